import { type Command, InvalidArgumentError } from 'commander'
import type { AuditEntry } from '../access/audit.ts'
import {
  type AuditFinding,
  type AuditVerification,
  verifyAudit,
} from '../access/audit-checkpoints.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { readDataKeys } from '../db/data-keys.ts'
import { auditEntries } from '../db/schema.ts'
import { createEncryption } from '../platform/crypto/encryption.ts'
import { listColumns, withIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Json, jsonOption, readCount, readId, UsageError } from './options.ts'
import { type Cli, formatTable } from './print.ts'

type AuditOptions = Json & { object?: string; key?: string; limit: number }

const HEADINGS = ['AT', 'WHO', 'OPERATION', 'MERCHANT', 'OBJECT', 'OUTCOME', 'REQUEST']

/** Adds `audit`, which lists writes and who made them, and `audit verify`. */
export function addAuditCommand(program: Command, cli: Cli): void {
  const { emit, onDatabase } = cli
  const audit = program
    .command('audit')
    .description('list writes over the API and changes to keys, and who made them, newest first')
    .option(
      '--object <id>',
      'only for this refund or key, or this payment or transaction with its refunds',
    )
    .option('--key <id>', 'only by this key', readId)
    .option('--limit <n>', 'the number of entries', readCount, 50)
    .addOption(jsonOption())
    .action(async ({ object: objectId, key: keyId, limit, json }: AuditOptions) => {
      const entries = await onDatabase((sql) => listEntries(sql, { objectId, keyId }, limit))
      emit(json, entries, formatTable(HEADINGS, entries.map(formatRow)))
    })
  addVerify(audit, cli)
}

/** Lists the newest entries, newest first, optionally of one object with its refunds or of one key. */
export async function listEntries(
  sql: Sql,
  { objectId, keyId }: { objectId?: string | undefined; keyId?: string | undefined },
  limit: number,
): Promise<AuditEntry[]> {
  const isOfObject =
    objectId === undefined
      ? sql`true`
      : sql`object_id in (select ${objectId}::text union all
          select refund_id::text from refunds where payment_id = ${objectId} or transaction_id = ${objectId})`
  const entries = await sql<AuditEntry[]>`
    select ${sql.unsafe(listColumns(auditEntries, 'a'))} from audit_entries as a
    where ${isOfObject} and ${keyId === undefined ? sql`true` : sql`key_id = ${keyId}`}
    order by id desc limit ${limit}`
  return entries.map((entry) => withIso(entry, ['at']))
}

function formatRow(entry: AuditEntry): string[] {
  const { at, actor, operation, merchantCode, objectId, outcome, requestId } = entry
  return [at, actor, operation, merchantCode ?? '-', objectId ?? '-', outcome, requestId ?? '-']
}

type NotedCheckpoint = { upToId: number; mac: string }
type VerifyOptions = Json & { checkpoint?: NotedCheckpoint }

/** Adds `audit verify`, with exit code 1 after a finding. */
function addVerify(audit: Command, { emit, printError, env, onDatabase, setExitCode }: Cli): void {
  audit
    .command('verify')
    .description('check that no audit entry was changed, deleted or added; exit code 0 or 1')
    .option(
      '--checkpoint <id:hash>',
      'a checkpoint from the log, which must be stored',
      readCheckpoint,
    )
    .addOption(jsonOption())
    .action(async (_: unknown, command: Command) => {
      const { checkpoint: noted, json } = command.optsWithGlobals<VerifyOptions>()
      const roots = readDataKeyConfig(env)
      const found = await onDatabase(async (sql) => {
        const keys = await readDataKeys(sql, roots)
        return await verifyAudit(
          sql,
          createEncryption(() => keys),
          { noted },
        )
      })
      if (noted && noted.upToId < (found.startId ?? 0)) {
        const kept = `retention has deleted the entries up to ${found.startId}`
        throw new UsageError(`the checkpoint is older than what is kept: ${kept}`)
      }
      emit(json, found, formatVerification(found))
      printError(`${summarise(found)}\n`)
      if (found.count > 0) setExitCode(1)
    })
}

function formatVerification({ last, startId, findings }: AuditVerification): string {
  const lines = [
    ...(startId === null ? [] : [`retention has deleted the entries up to ${startId}`]),
    `the newest checkpoint: ${last ?? 'none yet'}`,
    ...findings.map(formatFinding),
  ]
  return `${lines.join('\n')}\n`
}

const FINDINGS: Readonly<Record<AuditFinding['kind'], string>> = {
  differs: 'an entry in it was changed, deleted or added, or the checkpoint was',
  before_start: 'entries stand before the start that retention left: they were added later',
  forged_start:
    'retention did not sign this start: checkpoints before it were deleted, or DATA_ENCRYPTION_KEY is not the key it was made with',
  late: 'entries older than 20 minutes are in no checkpoint; does a worker run?',
  not_stored:
    'the checkpoint of the log is not stored: the database was set back, or checkpoints were deleted',
}

function formatFinding({ kind, afterId, upToId }: AuditFinding): string {
  const after = afterId === null ? [] : [`after ${afterId}`]
  const upTo = upToId === null ? [] : [`up to ${upToId}`]
  return `entries ${[...after, ...upTo].join(' ')}: ${kind}: ${FINDINGS[kind]}`
}

function summarise({ verified, checkpoints, waiting, count }: AuditVerification): string {
  const result =
    count === 0
      ? 'the audit log is intact'
      : `${count} ${count === 1 ? 'finding' : 'findings'}: the audit log may have been changed`
  const young = waiting > 0 ? `, ${waiting} in none yet` : ''
  return `${result}: ${verified} entries verified in ${checkpoints} checkpoints${young}`
}

/** Parses `1234:9f86d081884c…`. @throws InvalidArgumentError */
function readCheckpoint(text: string): NotedCheckpoint {
  const [, upToId = '', mac = ''] = /^(\d{1,15}):([0-9a-f]{12,64})$/i.exec(text) ?? []
  if (mac !== '') return { upToId: Number(upToId), mac: mac.toLowerCase() }
  throw new InvalidArgumentError(
    'Write an id and at least 12 hexadecimal digits, as they stand in the log: 1234:9f86d081884c.',
  )
}
