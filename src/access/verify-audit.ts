import type { Encryption } from '../platform/crypto/encryption.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql } from '../platform/postgres/types.ts'
import {
  createEntryDigest,
  formatCheckpoint,
  isSigned,
  isStart,
  readCheckpoints,
  readEntries,
} from './audit-checkpoints.ts'

/** What `verifyAudit` finds; the text explains it. */
export const AUDIT_FINDINGS = {
  differs: 'an entry in it was changed, deleted or added, or the checkpoint was',
  before_start: 'entries stand before the start that retention left: they were added later',
  forged_start:
    'retention did not sign this start: checkpoints before it were deleted, or DATA_ENCRYPTION_KEY is not the key it was made with',
  late: 'entries older than 20 minutes are in no checkpoint; does a worker run?',
  not_stored:
    'the checkpoint of the log is not stored: the database was set back, or checkpoints were deleted',
} as const

/** A finding, between two ids of entries: after the first, up to the second. */
export type AuditFinding = {
  kind: keyof typeof AUDIT_FINDINGS
  afterId: number | null
  upToId: number | null
}

/** What was verified. */
export type AuditVerification = {
  /** Entries that are as they were recorded, and the checkpoints that say so. */
  verified: number
  checkpoints: number
  /** Entries that are in no checkpoint yet. */
  waiting: number
  /** Retention has deleted the entries up to this id. */
  startId: number | null
  /** The newest checkpoint, as it stands in the log. */
  last: string | null
  /** The first findings, and the number of all. */
  findings: AuditFinding[]
  count: number
}

/** A checkpoint as it was noted from the log: an id, and the first digits of its HMAC. */
export type NotedCheckpoint = { upToId: number; mac: string }

/** So many findings are listed; all are counted. */
const LISTED = 100

/**
 * Verifies the audit log against its checkpoints, in one snapshot and in bounded batches. It writes nothing and locks
 * nothing, so the service may run.
 * @param noted a checkpoint of the log, which must be stored
 * @param batch rows per statement
 */
export async function verifyAudit(
  sql: Sql,
  encryption: Encryption,
  { noted, batch = 2_000 }: { noted?: NotedCheckpoint | undefined; batch?: number } = {},
): Promise<AuditVerification> {
  return await runInTransaction(sql, async (tx) => {
    await tx`set transaction isolation level repeatable read, read only`
    const found = createVerification()
    const entries = readEntries(tx, batch)
    let next = await entries.next()
    let before: Parameters<typeof isSigned>[1]
    let isNotedStored = noted === undefined
    for await (const checkpoint of readCheckpoints(tx, batch)) {
      const digest = createEntryDigest()
      for (; !next.done && next.value.id <= checkpoint.upToId; next = await entries.next()) {
        digest.add(next.value)
      }
      const place = { afterId: before?.upToId ?? null, upToId: checkpoint.upToId }
      if (!before && checkpoint.startMac) {
        found.startId = checkpoint.upToId
        if (digest.rows() > 0) addFinding(found, { kind: 'before_start', ...place })
        if (!isStart(encryption, checkpoint)) addFinding(found, { kind: 'forged_start', ...place })
      } else {
        found.checkpoints += 1
        if (isSigned(encryption, before, checkpoint, digest)) found.verified += digest.rows()
        else addFinding(found, { kind: 'differs', ...place })
      }
      found.last = formatCheckpoint(checkpoint)
      isNotedStored ||= found.last.startsWith(`${noted?.upToId}:${noted?.mac}`)
      before = checkpoint
    }
    let isLate = false
    for (; !next.done; next = await entries.next()) {
      found.waiting += 1
      isLate ||= next.value.late
    }
    const end = { afterId: before?.upToId ?? null, upToId: null }
    if (isLate) addFinding(found, { kind: 'late', ...end })
    if (!isNotedStored && noted)
      addFinding(found, { kind: 'not_stored', afterId: null, upToId: noted.upToId })
    return found
  })
}

function createVerification(): AuditVerification {
  const none = { startId: null, last: null, findings: [], count: 0 }
  return { verified: 0, checkpoints: 0, waiting: 0, ...none }
}

function addFinding(found: AuditVerification, finding: AuditFinding): void {
  found.count += 1
  if (found.findings.length < LISTED) found.findings.push(finding)
}
