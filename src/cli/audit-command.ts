import type { Command } from 'commander'
import { type AuditEntry, listAuditEntries } from '../access/audit.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { type AuditStreams, addAuditChainCommands } from './audit-chain-commands.ts'
import { formatTable } from './format-table.ts'
import { readCount, readId } from './options.ts'

type AuditOptions = { object?: string; key?: string; limit: number; json?: true }

const HEADINGS = ['AT', 'WHO', 'OPERATION', 'MERCHANT', 'OBJECT', 'OUTCOME', 'REQUEST']

/** Adds `audit`, which lists writes and who made them, with the commands on its chains. */
export function addAuditCommand(program: Command, streams: AuditStreams): void {
  const { print, onDatabase } = streams
  const audit = program
    .command('audit')
    .description('list writes over the API and changes to keys, and who made them, newest first')
    .option(
      '--object <id>',
      'only for this refund or key, or this payment or transaction with its refunds',
    )
    .option('--key <id>', 'only by this key', readId)
    .option('--limit <n>', 'the number of entries', readCount, 50)
    .option('--json', 'as JSON, for programs')
    .action(async ({ object: objectId, key: keyId, limit, json }: AuditOptions) => {
      const found = await onDatabase((sql) => listAuditEntries(sql, { objectId, keyId }, limit))
      const entries = found.map((entry) => ({ ...entry, at: toIso(entry.at) }))
      print(
        json
          ? `${JSON.stringify(entries, null, 2)}\n`
          : formatTable(HEADINGS, entries.map(formatRow)),
      )
    })
  addAuditChainCommands(audit, streams)
}

function formatRow(entry: AuditEntry): string[] {
  const { at, actor, operation, merchantCode, objectId, outcome, requestId } = entry
  return [at, actor, operation, merchantCode ?? '-', objectId ?? '-', outcome, requestId ?? '-']
}
