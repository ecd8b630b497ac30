import type { Database } from '../db/client.ts'
import { AUDIT_CHECKPOINT_LOCK } from '../db/names.ts'
import { auditCheckpoints } from '../db/schema.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'

type CheckpointContext = { db: Pick<Database, 'sql'>; log: Log; encryption: Encryption }
type AuditContext = CheckpointContext & { config: { RETENTION_DAYS: number } }

/** Smaller than every id, even a forged one. */
const BEFORE_ALL = -Number.MAX_SAFE_INTEGER

type Checkpoint = typeof auditCheckpoints.$inferSelect
type Named = Pick<Checkpoint, 'upToId' | 'mac'>

/** What is signed of some entries: their number, and a SHA-256 over all columns of each, ordered by id. */
type Digest = { entries: number; digest: string }

/**
 * Existing checkpoints depend on the form of the digest, which no setting of a session may change. JSON escapes
 * whatever could end a value. A time is in UTC with microseconds and the era, or null if it is not finite.
 */
const DIGEST = `count(*) as entries, encode(sha256(coalesce(string_agg(sha256(convert_to(json_build_array(
  id, to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US BC'), key_id, actor, operation, merchant_code, object_id,
  request_id, outcome)::text, 'UTF8')), ''::bytea order by id), '')), 'hex') as digest`

/**
 * An entry is young as long as a lower id may still be committed: ids are assigned before the commit, and the server
 * ends a unit of work that waits for more than 60 s. A time far in the future is not from this service.
 */
const YOUNG = `at between now() - interval '10 minutes' and now() + interval '10 minutes'`

/** Formats what the HMAC of a checkpoint covers. No other text under the same key begins with these words. */
function formatSigned(before: Named | undefined, upToId: number, of: Digest): string {
  const fields = [before?.mac.toString('hex') ?? null, upToId, of.entries, of.digest]
  return `audit checkpoint ${JSON.stringify(fields)}`
}

const formatStart = ({ upToId, mac }: Named) =>
  `audit start ${JSON.stringify([upToId, mac.toString('hex')])}`

/** As in the log: `1204:9f86d081884c…`. */
const formatCheckpoint = ({ upToId, mac }: Named) => `${upToId}:${mac.toString('hex')}`

type ReadCheckpoint = Checkpoint & Digest & { expired: boolean }

function isSigned(
  encryption: Encryption,
  before: Named | undefined,
  read: ReadCheckpoint,
): boolean {
  if (read.rows !== read.entries) return false
  const signed = formatSigned(before, read.upToId, read)
  return encryption.checkFingerprint(signed, { value: read.mac, keyId: read.macKeyId }) === 'same'
}

/** Whether retention has signed that it deleted everything up to this checkpoint. */
function isStart(encryption: Encryption, checkpoint: Checkpoint): boolean {
  const { startMac: value, macKeyId: keyId } = checkpoint
  if (value === null) return false
  return encryption.checkFingerprint(formatStart(checkpoint), { value, keyId }) === 'same'
}

/**
 * One entry more than were signed is read, which shows that some were added.
 * @param days a checkpoint is `expired` if all its entries are older
 */
async function readCheckpoints(tx: Tx, after: number, limit: number, days = 0) {
  return await tx<ReadCheckpoint[]>`
    select ${tx.unsafe(listColumns(auditCheckpoints, 'c'))}, e.* from (
        select *, lag(up_to_id, 1, ${after}::bigint) over (order by up_to_id) as after_id from (
          select * from audit_checkpoints where up_to_id > ${after} order by up_to_id limit ${limit}) as c) as c
      cross join lateral (
        select ${tx.unsafe(DIGEST)}, bool_and(at < now() - ${days} * interval '1 day') is not false as expired from (
          select * from audit_entries where id > c.after_id and id <= c.up_to_id order by id limit rows + 1) as e) as e
    order by c.up_to_id`
}

/**
 * Creates a pass that signs entries that are old enough and then deletes expired ones: while nothing can be signed,
 * nothing is deleted. A checkpoint that differs is logged when it is found, and then at most every hour.
 */
export function createAuditPass(ctx: AuditContext): () => Promise<number> {
  const throttle = createThrottle(3_600_000)
  const sayDiffering = (checkpoint: Named) => {
    if (!throttle('differing')) return
    ctx.log.error(
      { checkpoint: formatCheckpoint(checkpoint) },
      `expired audit entries are not those of their checkpoint; nothing is deleted from there on; run ${CLI} audit verify`,
    )
  }
  return async () => (await addCheckpoint(ctx)) + (await deleteExpiredEntries(ctx, sayDiffering))
}

/**
 * Adds the next checkpoint. It covers the entries of all accounts up to the first young one, so that the entries of
 * one account cannot be set back alone. One process at a time does so, and no write waits for it. The checkpoint is
 * also a line of the log, as a copy outside the database.
 * @param most entries of a checkpoint; a larger backlog takes several
 */
export async function addCheckpoint(ctx: CheckpointContext, most = 1_000): Promise<number> {
  const { db, log, encryption } = ctx
  const added = await runInTransaction(db.sql, async (tx) => {
    if (!(await takeTurn(tx))) return undefined
    const [last] = await tx<Named[]>`
      select up_to_id as "upToId", mac from audit_checkpoints order by up_to_id desc limit 1`
    const [next] = await tx<(Digest & { upToId: number | null })[]>`
      select ${tx.unsafe(DIGEST)}, max(id) as "upToId" from (
        select *, bool_or(${tx.unsafe(YOUNG)}) over (order by id) as waits from (
          select * from audit_entries where id > ${last?.upToId ?? BEFORE_ALL}
          order by id limit ${tx.unsafe(String(most))}) as e) as e
      where not waits`
    if (!next || next.upToId === null) return undefined
    const { upToId, entries } = next
    const { value: mac, keyId } = encryption.fingerprint(formatSigned(last, upToId, next))
    await tx`
      insert into audit_checkpoints (up_to_id, rows, mac, mac_key_id)
      values (${upToId}, ${entries}, ${mac}, ${keyId})`
    return { checkpoint: formatCheckpoint({ upToId, mac }), entries }
  })
  if (!added) return 0
  log.info(added, 'audit checkpoint')
  return added.entries
}

/** @returns false while another process adds or deletes a checkpoint */
async function takeTurn(tx: Tx): Promise<boolean> {
  const [turn] = await tx<{ mine: boolean }[]>`
    select pg_try_advisory_xact_lock(${tx.unsafe(AUDIT_CHECKPOINT_LOCK)}) as mine`
  return turn?.mine === true
}

/**
 * Deletes the entries of the oldest checkpoint once all of them are past `RETENTION_DAYS`; it becomes the signed
 * start of those after it. Entries that differ from what was signed are kept, as is everything after them: a changed
 * time must not make evidence disappear. A database role that may not delete entries leaves them to one that may.
 */
export async function deleteExpiredEntries(
  { db: { sql }, encryption, config }: AuditContext,
  onDiffering: (checkpoint: Named) => void,
): Promise<number> {
  return await runInTransaction(sql, async (tx) => {
    const [role] = await tx<{ may: boolean }[]>`
      select has_table_privilege('audit_entries', 'DELETE') as may`
    if (!role?.may || !(await takeTurn(tx))) return 0
    const [first, second] = await readCheckpoints(tx, BEFORE_ALL, 2, config.RETENTION_DAYS)
    const [start, oldest] = first?.startMac ? [first, second] : [undefined, first]
    if (!oldest?.expired) return 0
    const isGenuine = (!start || isStart(encryption, start)) && isSigned(encryption, start, oldest)
    if (!isGenuine) {
      onDiffering(oldest)
      return 0
    }
    const { upToId, entries } = oldest
    const { value: startMac, keyId } = encryption.fingerprint(formatStart(oldest))
    const { count } = await tx`
      delete from audit_entries where id > ${start?.upToId ?? BEFORE_ALL} and id <= ${upToId}`
    if (count !== entries) throw new Error('expired audit entries changed while they were deleted')
    await tx`delete from audit_checkpoints where up_to_id < ${upToId}`
    await tx`
      update audit_checkpoints set start_mac = ${startMac}, mac_key_id = ${keyId} where up_to_id = ${upToId}`
    return entries
  })
}

/** A finding about the entries after one id and up to another. `docs/operations.md` explains each kind. */
export type AuditFinding = {
  kind: 'differs' | 'before_start' | 'forged_start' | 'late' | 'not_stored'
  afterId: number | null
  upToId: number | null
}

export type AuditVerification = {
  /** Entries that are as they were signed, the number of checkpoints, and the entries that are in none yet. */
  verified: number
  checkpoints: number
  waiting: number
  startId: number | null
  /** The newest checkpoint, formatted as in the log. */
  last: string | null
  /** The first hundred findings, and how many there are. */
  findings: AuditFinding[]
  count: number
}

/**
 * Verifies the audit log against its checkpoints, in one snapshot and in bounded batches. It writes and locks
 * nothing, so the service may run.
 * @param noted a checkpoint of the log that must be stored: an id, and the first digits of its HMAC
 */
export async function verifyAudit(
  sql: Sql,
  encryption: Encryption,
  {
    noted,
    batch = 200,
  }: { noted?: { upToId: number; mac: string } | undefined; batch?: number } = {},
): Promise<AuditVerification> {
  return await runInTransaction(sql, async (tx) => {
    await tx`set transaction isolation level repeatable read, read only`
    const none = { waiting: 0, startId: null, last: null, findings: [], count: 0 }
    const found: AuditVerification = { verified: 0, checkpoints: 0, ...none }
    const add = (kind: AuditFinding['kind'], afterId: number | null, upToId: number | null) => {
      found.count += 1
      if (found.findings.length < 100) found.findings.push({ kind, afterId, upToId })
    }
    let before: Named | undefined
    let isNotedStored = noted === undefined
    const readNext = () => readCheckpoints(tx, before?.upToId ?? BEFORE_ALL, batch)
    for (let read = await readNext(); read.length > 0; read = await readNext()) {
      for (const checkpoint of read) {
        const { upToId, entries } = checkpoint
        const afterId = before?.upToId ?? null
        if (!before && checkpoint.startMac) {
          found.startId = upToId
          if (entries > 0) add('before_start', afterId, upToId)
          if (!isStart(encryption, checkpoint)) add('forged_start', afterId, upToId)
        } else {
          found.checkpoints += 1
          if (isSigned(encryption, before, checkpoint)) found.verified += entries
          else add('differs', afterId, upToId)
        }
        found.last = formatCheckpoint(checkpoint)
        isNotedStored ||= found.last.startsWith(`${noted?.upToId}:${noted?.mac}`)
        before = checkpoint
      }
    }
    const [after] = await tx<{ waiting: number; late: boolean }[]>`
      select count(*) as waiting,
        bool_or(not (at between now() - interval '20 minutes' and now() + interval '20 minutes')) is true as late
      from audit_entries where id > ${before?.upToId ?? BEFORE_ALL}`
    found.waiting = after?.waiting ?? 0
    if (after?.late) add('late', before?.upToId ?? null, null)
    if (!isNotedStored && noted) add('not_stored', null, noted.upToId)
    return found
  })
}
