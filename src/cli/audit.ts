import { z } from 'zod'
import type { AuditEntry } from '../access/audit.ts'
import { type AuditFinding, verifyAudit } from '../access/audit-checkpoints.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { readDataKeys } from '../db/data-keys.ts'
import { auditEntries } from '../db/schema.ts'
import { createEncryption } from '../platform/crypto/encryption.ts'
import { listColumns, withIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { command, UsageError } from './command.ts'
import { formatTable } from './print.ts'
import { Count } from './values.ts'

const LIST = command({
  name: 'audit',
  description: 'list writes over the API and changes to keys, and who made them, newest first',
  input: {
    object: z
      .string()
      .optional()
      .describe('only for this refund or key, or this payment or transaction with its refunds'),
    key: z.guid('must be the id of a key; see keys list').optional().describe('only by this key'),
    limit: Count.default(50).describe('the number of entries; 50 if left out'),
  },
  async run({ onDatabase }, { object: objectId, key: keyId, limit }) {
    const value = await onDatabase(({ sql }) => listEntries(sql, { objectId, keyId }, limit))
    return { value, text: formatTable(value, COLUMNS) }
  },
})

const COLUMNS = [
  ...(['at', 'actor', 'operation', 'merchantCode', 'objectId', 'outcome', 'requestId'] as const),
]

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

const CHECKPOINT = /^(\d{1,15}):([0-9a-f]{12,64})$/i

const VERIFY = command({
  name: 'audit verify',
  description: 'check that no audit entry was changed, deleted or added; exit code 0 or 1',
  input: {
    checkpoint: z
      .string()
      .regex(
        CHECKPOINT,
        'must be an id and at least 12 hexadecimal digits, as they stand in the log: 1234:9f86d081884c',
      )
      .optional()
      .describe('a checkpoint from the log (id:hash), which must be stored'),
  },
  async run({ env, printError, onDatabase }, { checkpoint }) {
    const [, upToId, mac = ''] = CHECKPOINT.exec(checkpoint ?? '') ?? []
    const noted = upToId ? { upToId: Number(upToId), mac: mac.toLowerCase() } : undefined
    const roots = readDataKeyConfig(env)
    const found = await onDatabase(async ({ sql }) => {
      const keys = await readDataKeys(sql, roots)
      const encryption = createEncryption(() => keys)
      return await verifyAudit(sql, encryption, { noted })
    })
    const { startId, last, findings, count, verified, checkpoints, waiting } = found
    const kept = `retention has deleted the entries up to ${startId}`
    if (noted && noted.upToId < (startId ?? 0)) {
      throw new UsageError(`the checkpoint is older than what is kept: ${kept}`)
    }
    const lines = [
      ...(startId === null ? [] : [kept]),
      `the newest checkpoint: ${last ?? 'none yet'}`,
      ...findings.map(formatFinding),
    ]
    const several = `${count} ${count === 1 ? 'finding' : 'findings'}: the audit log may have been changed`
    const result = count === 0 ? 'the audit log is intact' : several
    const young = waiting > 0 ? `, ${waiting} in none yet` : ''
    printError(`${result}: ${verified} entries verified in ${checkpoints} checkpoints${young}\n`)
    return { value: found, text: `${lines.join('\n')}\n`, isFinding: count > 0 }
  },
})

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

export const AUDIT = [LIST, VERIFY]
