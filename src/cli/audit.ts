import type { Command } from 'commander'
import { type AuditEntry, listAuditEntries } from '../access/audit.ts'
import { toIso } from '../db/client.ts'
import { withDatabase } from './database.ts'
import { readCount, readId } from './options.ts'
import { writeTable } from './table.ts'

type Options = { object?: string; key?: string; limit: number; json?: true }

const HEADINGS = ['AT', 'WHO', 'OPERATION', 'MERCHANT', 'OBJECT', 'OUTCOME', 'REQUEST']

/** `audit`: who asked for what. */
export function addAuditCommand(program: Command, print: (text: string) => void): void {
  program
    .command('audit')
    .description('list who asked for what: writes over the API and changes of keys, newest first')
    .option('--object <id>', 'of this refund, key, or payment or transaction with its refunds')
    .option('--key <id>', 'by this key', readId)
    .option('--limit <n>', 'how many', readCount, 50)
    .option('--json', 'as JSON, for programs')
    .action(async ({ object: objectId, key: keyId, limit, json }: Options) => {
      const found = await withDatabase((sql) => listAuditEntries(sql, { objectId, keyId }, limit))
      const entries = found.map((entry) => ({ ...entry, at: toIso(entry.at) }))
      print(
        json
          ? `${JSON.stringify(entries, null, 2)}\n`
          : writeTable(HEADINGS, entries.map(writeRow)),
      )
    })
}

function writeRow(entry: AuditEntry): string[] {
  const { at, actor, operation, merchantCode, objectId, outcome, requestId } = entry
  return [at, actor, operation, merchantCode ?? '-', objectId ?? '-', outcome, requestId ?? '-']
}
