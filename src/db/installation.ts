import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { CLI } from '../version.ts'
import { PUBLISHING_LOCK } from './names.ts'

/**
 * Positions of the feed in an epoch. The events of the next one begin behind all of them, so that no position, which is
 * also the id of an event, is ever given twice, and every cursor says which epoch it is from.
 */
export const POSITIONS_PER_EPOCH = 1_000_000_000_000

/**
 * The history of writes that the server goes on with: one that was restored to an earlier moment, or took over from
 * another, begins a new one. The name of the file it writes to says which at once, the control file after its next
 * checkpoint.
 */
const TIMELINE = `('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint`

/** The server that runs the statement, as `server`: in one that reads a table, it is the server that has the table. */
const SERVER = `(
  select s.system_identifier::text as system_identifier, ${TIMELINE} as timeline
  from pg_control_system() as s) as server`

/**
 * The condition that refunds and events may be sent: nobody has to say first what was lost, and the server that is
 * asked is still the one of the row. What records an attempt and what publishes events have it in their statement, so
 * that no failover comes between; a round of webhooks asks before. Within a statement of Citus that writes it stands in
 * a select of its own, which the server that has the tables runs.
 */
export const MAY_SEND_SQL = `exists (
  select from installation as i, ${SERVER}
  where i.stopped_at is null and i.system_identifier = server.system_identifier and i.timeline = server.timeline)`

/**
 * The epoch as ETags carry it. While sending is stopped, and on a timeline that nothing has noticed yet, it is one that
 * was never given before, nor will be again.
 */
export const EPOCH_TAG_SQL = `(
  select concat_ws('-', i.epoch, floor(extract(epoch from i.stopped_at)), case when i.timeline <> now.timeline then now.timeline end)
  from installation as i, (select ${TIMELINE} as timeline) as now)`

/** Whether an installation is in the schema, of whatever version. */
export async function hasInstallation(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ has: boolean }[]>`select to_regclass('installation') is not null as has`
  return row?.has ?? false
}

/** Reads the epoch: 0 before the first restore. */
export async function readEpoch(sql: Sql): Promise<number> {
  const [row] = await sql<{ epoch: number }[]>`select epoch from installation`
  return row?.epoch ?? 0
}

/** Since when nothing is sent (ISO 8601 as the database writes it), and why, as a clause. */
export type Stop = { since: string; because: string }

/** What tells a server from another, and a moment of it from an earlier one. */
type Server = { systemIdentifier: string; timeline: number }

/** When this process last found the server to be the one it knew (µs of the database's clock). */
export type Sighting = { seenAt: number | undefined }

/**
 * Returns why commits may have been lost since the server of before, as a clause. The standby that takes over from a
 * server which waited for it has all of them. A backup has not, nor has a standby that was left behind, although both
 * say that there was a standby: what they say is as old as they are.
 */
function explainLoss(row: Row, { seenAt }: Sighting): string | undefined {
  const { server, ...before } = row
  const hasAll = seenAt === undefined ? before.isRecent : before.seenAt >= seenAt
  if (server.systemIdentifier !== before.systemIdentifier) {
    return `it is another server than before (system identifier ${server.systemIdentifier}, before ${before.systemIdentifier})`
  }
  if (server.timeline === before.timeline || (before.hasStandby && hasAll)) return undefined
  return `it continues from an earlier moment, or took over without a synchronous standby (timeline ${server.timeline}, before ${before.timeline})`
}

/** The line for operators about a stop. */
export function describeStop({ since, because }: Stop): string {
  return `nothing is sent since ${since}: the database may have lost commits, because ${because}; run ${CLI} restored, or, if nothing was lost, ${CLI} restored --nothing-lost`
}

/** Returns whether refunds and events may be sent. */
export async function maySend(sql: Sql): Promise<boolean> {
  const [row] = await sql.unsafe<{ may: boolean }[]>(`select ${MAY_SEND_SQL} as may`)
  return row?.may ?? false
}

type Row = Server & {
  hasStandby: boolean
  seenAt: number
  /** It was seen a short while ago, so that this is no old copy. */
  isRecent: boolean
  stop: Stop | null
  server: Server & { hasStandby: boolean }
}

const SEEN_AT = '(extract(epoch from i.seen_at) * 1000000)::bigint'

/** Reads the row, and the server that answers. */
async function readRow(sql: Sql | Tx, lock = ''): Promise<Row | undefined> {
  const [row] = await sql.unsafe<Row[]>(`
    select i.system_identifier as "systemIdentifier", i.timeline, i.has_standby as "hasStandby",
      ${SEEN_AT} as "seenAt", i.seen_at > now() - interval '1 minute' as "isRecent",
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
  const because = row.stop ? undefined : explainLoss(row, { seenAt: undefined })
  return row.stop ?? (because === undefined ? undefined : { since: 'the next start', because })
}

/**
 * Compares the server with the one of before, and stores it. If commits may have been lost, nothing is sent from then
 * on until `confirmRestore`.
 * @param sighting kept from one comparison to the next: what this process has seen committed, a database that has
 *   everything has, too. Without one, that the server was seen a minute ago has to do
 * @returns why nothing is sent, if so
 */
export async function compareServer(
  sql: Sql,
  sighting: Sighting = { seenAt: undefined },
): Promise<Stop | undefined> {
  const known = await readRow(sql)
  if (known && isSame(known)) {
    sighting.seenAt = (await noteSeen(sql)) ?? sighting.seenAt
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
    const because = row.stop ? undefined : explainLoss(row, sighting)
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

/** @returns nothing if another server answers by now */
async function noteSeen(sql: Sql): Promise<number | undefined> {
  const [row] = await sql.unsafe<{ seenAt: number }[]>(`
    with server as materialized (select server.* from installation, ${SERVER}), seen as (
      update installation as i set seen_at = clock.at from server, (select clock_timestamp() as at) as clock
      where i.system_identifier = server.system_identifier and i.timeline = server.timeline
      returning i.seen_at)
    select ${SEEN_AT} as "seenAt" from seen as i`)
  return row?.seenAt
}

async function storeServer(tx: Tx, { server }: Row): Promise<void> {
  const { systemIdentifier, timeline, hasStandby } = server
  await tx`
    update installation set system_identifier = ${systemIdentifier}, timeline = ${timeline},
      has_standby = ${hasStandby}, seen_at = clock.at
    from (select clock_timestamp() as at) as clock`
}

/** Stops sending; a stop that lasts stays as it is. */
export async function stopSending(tx: Tx, because: string): Promise<void> {
  await tx`
    update installation set stopped_at = now(), stopped_because = ${because}
    where stopped_at is null`
}

/** Lets refunds and events be sent again. */
export async function resumeSending(tx: Tx): Promise<void> {
  await tx`update installation set stopped_at = null, stopped_because = null`
}

/**
 * Raises the epoch. What readers hold from before is void: the feed goes on behind every cursor that was given, and ETags
 * begin with the epoch. Webhooks continue where they were.
 * @returns the epoch
 */
export async function raiseEpoch(tx: Tx): Promise<number> {
  // The publisher must not number an event of this epoch with a position of the one before.
  await tx`select pg_advisory_xact_lock(${tx.unsafe(PUBLISHING_LOCK)})`
  const [row] = await tx<{ epoch: number }[]>`
    update installation set epoch = epoch + 1, restored_at = clock_timestamp() returning epoch`
  if (!row) throw new Error('the row of the installation is missing')
  const start = row.epoch * POSITIONS_PER_EPOCH
  await tx`select setval(pg_get_serial_sequence('events', 'id'), ${start})`
  await tx`
    insert into event_removals (removed_up_to) values (${start})
    on conflict ("only") do update set removed_up_to = excluded.removed_up_to`
  return row.epoch
}
