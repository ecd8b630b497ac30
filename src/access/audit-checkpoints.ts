import { createHash } from 'node:crypto'
import { AUDIT_CHECKPOINT_LOCK } from '../db/names.ts'
import type { auditEntries } from '../db/schema.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'

type CheckpointContext = { sql: Sql; log: Log; encryption: Encryption }
type AuditContext = CheckpointContext & { config: { RETENTION_DAYS: number } }

/** Entries of one checkpoint at most; a larger backlog takes several. */
const MOST_ENTRIES = 1_000

/** Smaller than every id, also than one that somebody made up. */
const BEFORE_ALL = -Number.MAX_SAFE_INTEGER

/** A checkpoint: up to which id, how many entries, and the HMAC over them and the HMAC before. */
export type Checkpoint = {
  upToId: number
  rows: number
  mac: Buffer
  macKeyId: string
  /** Of the first one only: retention's signature that it deleted everything up to here. */
  startMac: Buffer | null
}

const CHECKPOINT = `up_to_id as "upToId", rows, mac, mac_key_id as "macKeyId", start_mac as "startMac"`

/** What is signed of an entry: every column, in this order. Existing checkpoints depend on it. */
const SIGNED_COLUMNS = [
  'id',
  'at',
  'keyId',
  'actor',
  'operation',
  'merchantCode',
  'objectId',
  'requestId',
  'outcome',
] as const satisfies readonly (keyof typeof auditEntries.$inferSelect)[]

/** An entry, with its columns as text that neither a session's settings nor the driver can change. */
export type SignedEntry = { id: number } & Record<
  Exclude<(typeof SIGNED_COLUMNS)[number], 'id'>,
  string | null
>

/** The time is in UTC with microseconds and the era; null for one that is not finite. */
const ENTRY = `id, to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US BC') as at, key_id::text as "keyId", actor,
  operation, merchant_code as "merchantCode", object_id as "objectId", request_id as "requestId", outcome`

/**
 * An entry is young while an id below its own may still be committed. Ids are assigned before the commit, and the server
 * ends a unit of work that waits for more than 60 s. A time far in the future is not from this service.
 */
const YOUNG = `at between now() - interval '10 minutes' and now() + interval '10 minutes'`

/** Computes what is signed of some entries; they are added in the order of their ids. */
export function createEntryDigest() {
  const hash = createHash('sha256')
  let rows = 0
  return {
    add(entry: SignedEntry): void {
      // JSON escapes line breaks, so the text can be split in one way only.
      hash.update(`${JSON.stringify(SIGNED_COLUMNS.map((name) => entry[name]))}\n`)
      rows += 1
    },
    rows: () => rows,
    end: () => hash.digest('hex'),
  }
}

type EntryDigest = ReturnType<typeof createEntryDigest>

/** Formats what the HMAC of a checkpoint covers. No other text under the same key begins so. */
function formatSigned(before: Checkpoint | undefined, upToId: number, digest: EntryDigest): string {
  const fields = [before?.mac.toString('hex') ?? null, upToId, digest.rows(), digest.end()]
  return `audit checkpoint ${JSON.stringify(fields)}`
}

const formatStart = ({ upToId, mac }: Pick<Checkpoint, 'upToId' | 'mac'>) =>
  `audit start ${JSON.stringify([upToId, mac.toString('hex')])}`

/** Whether these entries are those that the checkpoint was made of. */
export function isSigned(
  encryption: Encryption,
  before: Checkpoint | undefined,
  { upToId, rows, mac: value, macKeyId: keyId }: Checkpoint,
  digest: EntryDigest,
): boolean {
  if (rows !== digest.rows()) return false
  const signed = formatSigned(before, upToId, digest)
  return encryption.checkFingerprint(signed, { value, keyId }) === 'same'
}

/** Whether retention signed that it deleted everything up to the checkpoint. */
export function isStart(encryption: Encryption, checkpoint: Checkpoint): boolean {
  const { startMac: value, macKeyId: keyId } = checkpoint
  if (value === null) return false
  return encryption.checkFingerprint(formatStart(checkpoint), { value, keyId }) === 'same'
}

/** Formats a checkpoint as it stands in the log: `1204:9f86d081884c…`. */
export const formatCheckpoint = ({ upToId, mac }: Pick<Checkpoint, 'upToId' | 'mac'>) =>
  `${upToId}:${mac.toString('hex')}`

/** What differs stays so until a person has seen to it. */
const SAY_EVERY_MS = 3_600_000

/**
 * Returns a pass that signs what is old enough and then deletes what is expired: while nothing can be signed, nothing is
 * deleted. A checkpoint that differs is a line of the log when it is found, and at most one an hour from then on.
 */
export function createAuditPass(ctx: AuditContext): () => Promise<number> {
  const throttle = createThrottle(SAY_EVERY_MS)
  const sayDiffering = (checkpoint: Checkpoint) => {
    if (!throttle('differing')) return
    ctx.log.error(
      { checkpoint: formatCheckpoint(checkpoint) },
      `expired audit entries are not those of their checkpoint; nothing is deleted from there on; run ${CLI} audit verify`,
    )
  }
  return async () => (await addCheckpoint(ctx)) + (await deleteExpiredEntries(ctx, sayDiffering))
}

/**
 * Adds the next checkpoint: the entries of all accounts together, up to the first young one, so that no account can be
 * set back alone. No write waits for it; one process at a time makes one. The same line goes to the log, which is the copy
 * outside the database.
 * @returns the number of entries; 0 when none was old enough or another process is at it
 */
export async function addCheckpoint(
  { sql, log, encryption }: CheckpointContext,
  most = MOST_ENTRIES,
): Promise<number> {
  const added = await runInTransaction(sql, async (tx) => {
    if (!(await takeTurn(tx))) return undefined
    const [last] = await tx<Checkpoint[]>`
      select ${tx.unsafe(CHECKPOINT)} from audit_checkpoints order by up_to_id desc limit 1`
    const entries = await tx<SignedEntry[]>`
      select ${tx.unsafe(ENTRY)} from (
        select *, bool_or(${tx.unsafe(YOUNG)}) over (order by id) as waits from (
          select * from audit_entries where id > ${last?.upToId ?? BEFORE_ALL}
          order by id limit ${tx.unsafe(String(most))}) as e) as e
      where not waits order by id`
    const upToId = entries.at(-1)?.id
    if (upToId === undefined) return undefined
    const digest = createEntryDigest()
    for (const entry of entries) digest.add(entry)
    const { value: mac, keyId } = encryption.fingerprint(formatSigned(last, upToId, digest))
    await tx`
      insert into audit_checkpoints (up_to_id, rows, mac, mac_key_id)
      values (${upToId}, ${entries.length}, ${mac}, ${keyId})`
    return { upToId, mac, rows: entries.length }
  })
  if (!added) return 0
  log.info({ checkpoint: formatCheckpoint(added), entries: added.rows }, 'audit checkpoint')
  return added.rows
}

/** @returns false while another process adds or deletes a checkpoint */
async function takeTurn(tx: Tx): Promise<boolean> {
  const [turn] = await tx<{ mine: boolean }[]>`
    select pg_try_advisory_xact_lock(${AUDIT_CHECKPOINT_LOCK}) as mine`
  return turn?.mine === true
}

/**
 * Deletes the oldest checkpoint with its entries, once all of them are past `RETENTION_DAYS`; it stays as the signed start
 * of those after it. Entries that are not what was signed are kept, and everything after them: a changed time must not make
 * evidence disappear. A role that may not delete entries leaves them to one that may.
 * @param onDiffering receives a checkpoint whose entries are not what was signed
 * @returns the number of entries deleted; 0 when nothing is left to delete
 */
export async function deleteExpiredEntries(
  { sql, encryption, config }: AuditContext,
  onDiffering: (checkpoint: Checkpoint) => void,
): Promise<number> {
  return await runInTransaction(sql, async (tx) => {
    const [role] = await tx<{ may: boolean }[]>`
      select has_table_privilege('audit_entries', 'DELETE') as may`
    if (!role?.may || !(await takeTurn(tx))) return 0
    const [first, second] = await tx<Checkpoint[]>`
      select ${tx.unsafe(CHECKPOINT)} from audit_checkpoints order by up_to_id limit 2`
    const [start, oldest] = first?.startMac ? [first, second] : [undefined, first]
    if (!oldest) return 0
    const { upToId, mac } = oldest
    // One more than were signed is enough to see that some were added.
    const entries = await tx<(SignedEntry & { expired: boolean })[]>`
      select ${tx.unsafe(ENTRY)}, at < now() - ${config.RETENTION_DAYS} * interval '1 day' as expired
      from audit_entries where id > ${start?.upToId ?? BEFORE_ALL} and id <= ${upToId}
      order by id limit ${oldest.rows + 1}`
    if (!entries.every(({ expired }) => expired)) return 0
    const digest = createEntryDigest()
    for (const entry of entries) digest.add(entry)
    const isGenuine =
      (!start || isStart(encryption, start)) && isSigned(encryption, start, oldest, digest)
    if (!isGenuine) {
      onDiffering(oldest)
      return 0
    }
    const { value: startMac, keyId } = encryption.fingerprint(formatStart({ upToId, mac }))
    await tx`delete from audit_entries where id = any(${entries.map(({ id }) => id)})`
    await tx`delete from audit_checkpoints where up_to_id < ${upToId}`
    await tx`
      update audit_checkpoints set start_mac = ${startMac}, mac_key_id = ${keyId} where up_to_id = ${upToId}`
    return entries.length
  })
}

/** Selects how long the oldest entry without a checkpoint has waited (s); 0 when none waits. */
export const SELECT_CHECKPOINT_AGE = `select coalesce((
  select greatest(0, extract(epoch from now() - at))::float8 from audit_entries
  where id > coalesce((select up_to_id from audit_checkpoints order by up_to_id desc limit 1), ${BEFORE_ALL})
    and isfinite(at)
  order by id limit 1), 0) as value`

/** Reads all entries by their ids, in batches. `late`: it should be in a checkpoint by now. */
export async function* readEntries(
  tx: Tx,
  batch: number,
): AsyncGenerator<SignedEntry & { late: boolean }> {
  for (let after = BEFORE_ALL, more = true; more; ) {
    const rows = await tx<(SignedEntry & { late: boolean })[]>`
      select ${tx.unsafe(ENTRY)},
        not (at between now() - interval '20 minutes' and now() + interval '20 minutes') as late
      from audit_entries where id > ${after} order by id limit ${tx.unsafe(String(batch))}`
    yield* rows
    after = rows.at(-1)?.id ?? after
    more = rows.length === batch
  }
}

/** Reads all checkpoints by their ids, in batches. */
export async function* readCheckpoints(tx: Tx, batch: number): AsyncGenerator<Checkpoint> {
  for (let after = BEFORE_ALL, more = true; more; ) {
    const rows = await tx<Checkpoint[]>`
      select ${tx.unsafe(CHECKPOINT)} from audit_checkpoints
      where up_to_id > ${after} order by up_to_id limit ${tx.unsafe(String(batch))}`
    yield* rows
    after = rows.at(-1)?.upToId ?? after
    more = rows.length === batch
  }
}
