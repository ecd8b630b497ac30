import { DomainError } from '../errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { CLI } from '../version.ts'
import { PUBLISHING_LOCK } from './names.ts'
import { isUnendedSql } from './schema.ts'

/**
 * The moment that epochs count from, 2026-01-01 (s). An epoch is the time at which it began, because the database that
 * was restored does not know which epochs began since its backup. Until 2057 it has nine digits, as cursors require.
 */
const EPOCHS_FROM_S = 1_767_225_600
/**
 * Each epoch starts at this many feed positions per second. No second publishes as many events, so a position, which
 * is also an event's id, is never reused. It has the 15 digits that a replay accepts.
 */
const POSITIONS_PER_S = 1_000_000

/**
 * The server's current timeline. A point-in-time restore or a promotion starts a new one. The name of the current WAL
 * file shows it at once, whereas the control file only does so after the next checkpoint.
 */
const TIMELINE = `('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint`

/** The server that runs the statement, as `server`; on Citus, the one that holds the tables the statement reads. */
const SERVER = `(
  select s.system_identifier::text as system_identifier, ${TIMELINE} as timeline
  from pg_control_system() as s) as server`

/**
 * The condition for sending refunds and events: sending has not been stopped, and this is still the server on record.
 * After a takeover that was trusted, it is false until a worker has seen that trust committed, for 15 s from then on,
 * and until one has seen that, as each of these commits may wait for a standby: every worker compares every 5 s, and one
 * of them may have seen a commit that the process which trusted it did not know of. A worker that is cut off cannot be
 * told from one that is gone, so nobody waits for longer; it ends the trust when it compares. On Citus the clock here is
 * a worker's, and may differ from the coordinator's by a second.
 * The statements that record an attempt or publish events contain it, so that no failover can come in between;
 * webhook delivery checks it before each round. In a Citus statement that writes, it must be in a subselect, which
 * runs on the node that has the tables.
 */
export const MAY_SEND_SQL = `exists (
  select from installation as i, ${SERVER}
  where i.stopped_at is null and i.system_identifier = server.system_identifier and i.timeline = server.timeline
    and (i.trusted_at in ('infinity', i.seen_at) or i.trusted_at between clock_timestamp() - interval '15 s'
      and clock_timestamp() + interval '2 s') is not true)`

/**
 * The epoch as ETags carry it. While sending is stopped, and on a timeline that nobody has noticed yet, it is a value
 * that is never used at any other time.
 */
export const EPOCH_TAG_SQL = `(
  select concat_ws('-', i.epoch, floor(extract(epoch from i.stopped_at)), case when i.timeline <> now.timeline then now.timeline end)
  from installation as i, (select ${TIMELINE} as timeline) as now)`

/** Returns whether the schema has an installation, of any version. */
export async function hasInstallation(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ has: boolean }[]>`select to_regclass('installation') is not null as has`
  return row?.has ?? false
}

/** Reads the epoch, which is 0 before the first restore. */
export async function readEpoch(sql: Sql): Promise<number> {
  const [row] = await sql<{ epoch: number }[]>`select epoch from installation`
  return row?.epoch ?? 0
}

/** Since when nothing is sent (ISO 8601 as the database writes it), and why (a clause). */
export type Stop = { since: string; because: string }

/** Identifies a server, and its history of writes. */
type Server = { systemIdentifier: string; timeline: number }

const LOST_AGAIN =
  'commits may have been lost again meanwhile, so nothing is sent: look at what was lost, and run it again'

/** When a process last saw the server it knows (µs, by the database's clock), on which timeline, and if that is trusted. */
export type Sighting = {
  timeline: number | undefined
  seenAt: number | undefined
  isTrusted?: boolean
}

const NEVER: Sighting = { timeline: undefined, seenAt: undefined }

/**
 * Returns, as a clause, why commits may have been lost since the server on record; undefined if none can be. A
 * standby that was promoted has all commits if the old primary waited for it. A backup or a standby that fell behind
 * does not. Both may claim a synchronous standby, but their claim is as old as their data, which `seen_at` shows. If
 * another process has trusted a takeover, this one compares its own sighting with the data as it was then.
 */
function explainLoss(row: Row, sighting: Sighting): string | undefined {
  const { server, ...before } = row
  if (server.systemIdentifier !== before.systemIdentifier) {
    return `it is another server than before (system identifier ${server.systemIdentifier}, before ${before.systemIdentifier})`
  }
  if (server.timeline === before.timeline) {
    const { seenAt = 0, timeline = server.timeline } = sighting
    if (timeline === server.timeline || (before.trustedSeenAt ?? seenAt) >= seenAt) return undefined
    return `it lacks what a process had seen committed (timeline ${server.timeline}, before ${timeline})`
  }
  const { seenAt, timeline = before.timeline } = sighting
  const knows = timeline === before.timeline
  const had = knows ? before.seenAt : (before.trustedSeenAt ?? before.seenAt)
  // Who missed a takeover does not know what was committed after it.
  const isKept = (knows && seenAt !== undefined) || before.isRecent
  const hasAll = isKept && (seenAt === undefined || had >= seenAt)
  if (before.hasStandby && hasAll) return undefined
  return `it continues from an earlier moment, or took over without a synchronous standby (timeline ${server.timeline}, before ${before.timeline})`
}

export function describeStop({ since, because }: Stop): string {
  return `nothing is sent since ${since}: the database may have lost commits, because ${because}; run ${CLI} restored, or, if nothing was lost, ${CLI} restored --nothing-lost`
}

export async function maySend(sql: Sql): Promise<boolean> {
  const [row] = await sql.unsafe<{ may: boolean }[]>(`select ${MAY_SEND_SQL} as may`)
  return row?.may ?? false
}

type Row = Server & {
  hasStandby: boolean
  seenAt: number
  /** It was seen within the last minute, so the database is not an old copy. */
  isRecent: boolean
  /** What `seenAt` was when the last takeover was trusted; null if it is no longer. */
  trustedSeenAt: number | null
  stop: Stop | null
  server: Server & { hasStandby: boolean }
}

const toMicroseconds = (time: string) => `(extract(epoch from ${time}) * 1000000)::bigint`
const SEEN_AT = toMicroseconds('i.seen_at')

async function readRow(sql: Sql | Tx, lock = ''): Promise<Row | undefined> {
  const [row] = await sql.unsafe<Row[]>(`
    select i.system_identifier as "systemIdentifier", i.timeline, i.has_standby as "hasStandby",
      ${SEEN_AT} as "seenAt", i.seen_at > now() - interval '1 minute' as "isRecent",
      ${toMicroseconds('i.trusted_seen_at')} as "trustedSeenAt",
      case when i.stopped_at is not null
        then json_build_object('since', i.stopped_at, 'because', i.stopped_because) end as stop,
      json_build_object('systemIdentifier', server.system_identifier, 'timeline', server.timeline,
        'hasStandby', current_setting('synchronous_standby_names') <> '') as server
    from installation as i, ${SERVER} ${lock}`)
  return row
}

/** Returns why nothing would be sent on this server. Writes nothing. */
export async function findStop(sql: Sql): Promise<Stop | undefined> {
  const row = await readRow(sql)
  if (!row) return undefined
  const because = row.stop ? undefined : explainLoss(row, NEVER)
  return row.stop ?? (because === undefined ? undefined : { since: 'the next start', because })
}

/**
 * Compares the server with the one on record and records it. If commits may have been lost, sending stops until
 * `confirmRestore`.
 * @param sighting kept by the caller from one comparison to the next. A database that has what this process saw
 *   committed has lost nothing. Without a sighting, the server must have been seen within the last minute, and that it
 *   is seen now is not noted
 * @returns why nothing is sent, if so
 */
export async function compareServer(sql: Sql, sighting?: Sighting): Promise<Stop | undefined> {
  const known = await readRow(sql)
  if (known && isSame(known) && explainLoss(known, sighting ?? NEVER) === undefined) {
    if (!sighting) return known.stop ?? undefined
    // What is visible may have been sent already, even if no standby has it.
    const { timeline, seenAt, trustedSeenAt } = known
    Object.assign(sighting, { timeline, seenAt, isTrusted: trustedSeenAt !== null })
    sighting.seenAt = (await noteSeen(sql, known)) ?? sighting.seenAt
    return known.stop ?? undefined
  }
  return await runInTransaction(sql, async (tx) => {
    await tx.unsafe(`
      insert into installation (system_identifier, timeline, has_standby)
      select system_identifier, timeline, current_setting('synchronous_standby_names') <> '' from ${SERVER}
      where not exists (select from installation)
      on conflict do nothing`)
    const row = await readRow(tx, 'for update of i')
    if (!row) throw new Error('the row of the installation is missing')
    await storeServer(tx, row)
    const because = explainLoss(row, sighting ?? NEVER)
    if (because !== undefined) await stopSending(tx, because)
    return (await readRow(tx))?.stop ?? undefined
  })
}

function isSame({ server, ...stored }: Row): boolean {
  return (
    server.systemIdentifier === stored.systemIdentifier &&
    server.timeline === stored.timeline &&
    server.hasStandby === stored.hasStandby
  )
}

/** @returns undefined if another server answers by now */
async function noteSeen(sql: Sql, known: Server): Promise<number | undefined> {
  const [row] = await sql.unsafe<{ seenAt: number }[]>(
    `
    with server as materialized (select server.* from installation, ${SERVER}), seen as (
      update installation as i set seen_at = clock.at,
        trusted_at = case when i.trusted_at = 'infinity' then clock.at else i.trusted_at end
      from server, (select clock_timestamp() as at) as clock
      where i.system_identifier = server.system_identifier and i.timeline = server.timeline and i.timeline = $1
      returning i.seen_at)
    select ${SEEN_AT} as "seenAt" from seen as i`,
    [known.timeline],
  )
  return row?.seenAt
}

/** Keeps the time at which the server was seen if the clock has gone back since, which nothing else may show. */
async function storeServer(tx: Tx, { server }: Row): Promise<void> {
  const { systemIdentifier, timeline, hasStandby } = server
  await tx`
    update installation set system_identifier = ${systemIdentifier}, timeline = ${timeline},
      has_standby = ${hasStandby}, seen_at = greatest(seen_at, clock.at),
      trusted_at = case when timeline = ${timeline} then trusted_at else 'infinity' end,
      trusted_seen_at = case when timeline = ${timeline} then trusted_seen_at else seen_at end
    from (select clock_timestamp() as at) as clock`
}

/** Stops sending. If it is stopped already, the stop counts anew, so that nobody confirms what came after they looked. */
export async function stopSending(tx: Tx, because: string): Promise<Stop> {
  await tx`
    update installation as i set stopped_at = clock.at, trusted_at = null, trusted_seen_at = null,
      stopped_because = coalesce(stopped_because || ', and then ', '') || ${because}::text
    from (select clock_timestamp() as at) as clock`
  const stop = (await readRow(tx))?.stop
  if (!stop) throw new Error('the row of the installation is missing')
  return stop
}

/** Ends this stop. @throws DomainError `unavailable` if commits may have been lost again since, which nobody looked at */
export async function resumeSending(tx: Tx, { since }: Stop): Promise<void> {
  await tx`
    update installation set stopped_at = null, stopped_because = null where stopped_at = ${since}::text::timestamptz`
  const { count } = await tx`select from installation where stopped_at is not null`
  if (count > 0) throw new DomainError('unavailable', LOST_AGAIN)
}

/**
 * Raises the epoch and thereby voids what readers hold: the feed continues behind every cursor issued so far, and
 * ETags, which begin with the epoch, change. Webhooks continue where they were. The refunds that are open count as
 * requested before, even if a clock that was ahead dated them: an attempt of any of them may have been forgotten.
 * @returns the new epoch
 */
export async function raiseEpoch(tx: Tx): Promise<number> {
  // The publisher must not give an event of the new epoch a position from the old one.
  await tx`select pg_advisory_xact_lock(${tx.unsafe(PUBLISHING_LOCK)})`
  const [open] = await tx<{ newest: string | null }[]>`
    select max(requested_at)::text as newest from refunds as r where ${tx.unsafe(isUnendedSql('r'))}`
  const [row] = await tx<{ epoch: number }[]>`
    update installation as i set
      epoch = greatest(i.epoch + 1, clock.epoch),
      restored_at = greatest(clock.at, ${open?.newest ?? null}::timestamptz + interval '1 microsecond')
    from (
      select clock_timestamp() as at, extract(epoch from clock_timestamp())::bigint - ${EPOCHS_FROM_S} as epoch
    ) as clock
    returning i.epoch`
  if (!row) throw new Error('the row of the installation is missing')
  // The sequence is not rolled back with a transaction, and may be ahead of this clock. The database does not know how
  // many positions were given out after what it still has, so as many as a second has are left out.
  const [{ start } = { start: 0 }] = await tx<{ start: number }[]>`
    select setval(s.name,
      greatest(${row.epoch * POSITIONS_PER_S}::bigint, nextval(s.name) + ${POSITIONS_PER_S})) as start
    from (select pg_get_serial_sequence('events', 'id') as name) as s`
  await tx`
    insert into event_removals (removed_up_to) values (${start})
    on conflict ("only") do update set removed_up_to = excluded.removed_up_to`
  return row.epoch
}
