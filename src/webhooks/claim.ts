import { randomUUID } from 'node:crypto'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import { webhookAttempts, webhookRetries } from '../db/schema.ts'
import type { EventRow } from '../events/event.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { runPipelined } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { liveKeyOf, recordCondition, type StoredEndpoint, selectStored } from './endpoints.ts'
import { CALL_MS, type SendResult, UNWRITABLE } from './send.ts'

/** Enough for two calls in a row, however they end, and for recording their results (ms). */
export const LEASE_MS = 4 * CALL_MS

/** An endpoint that only this process may send to until the lease expires. */
export type Claim = StoredEndpoint & {
  /** The fencing token. */
  leaseId: string
  /** Every event up to this one, and each in `ahead`, was accepted or waits as a retry. */
  cursor: number
  ahead: number[]
}

/** The key of a retry, for `byKey`. The event comes last, because the other indexes are ordered by endpoint, too. */
export const RETRY = ['endpoint_id', 'event_id']
export const RETRIES = ['endpoint_id', 'merchant_code', 'transaction_id']

/** Whether the retry `r` is the first of its transaction: the events of a transaction are sent in order. */
export function isFirst(sql: Sql | Tx) {
  return sql`r.event_id = (
    select own.event_id from webhook_retries as own
    where ${sql.unsafe(byKey('own', RETRIES, 'r'))}, own.event_id limit 1)`
}

const selectClaim = (sql: Sql | Tx) =>
  sql`${selectStored(sql)}, e.lease_id as "leaseId", e.cursor, e.ahead`

/**
 * Claims up to `limit` endpoints with something to send, those that have waited longest first. The rows are locked
 * and read at their current values, so two processes never send to the same endpoint at once.
 * @param isFailing whether to claim endpoints that fail, or those that do not
 */
export async function claimEndpoints(
  { db: { sql }, lifecycle }: Pick<Context, 'db' | 'lifecycle'>,
  isFailing: boolean,
  limit: number,
): Promise<Claim[]> {
  if (limit <= 0) return []
  return await sql<Claim[]>`
    with picked as materialized (
      select e.id from webhook_endpoints as e
      where e.disabled_at is null and e.due_at <= now() and (e.failing_since is not null) = ${isFailing}
        and exists ${liveKeyOf(sql)}
        and (
          case when e.merchant_code = ${EVERY_MERCHANT}
            then exists (select from events as ev where ev.id > e.cursor offset 0)
            else exists (select from events as ev
              where ev.merchant_code = e.merchant_code and ev.id > e.cursor offset 0) end
          or exists (select from webhook_retries as r
            where r.endpoint_id = e.id and r.due_at <= now() and ${isFirst(sql)} offset 0))
      order by e.due_at limit ${limit}::int for no key update of e skip locked
    ), clock as materialized (
      select at, at + ${LEASE_MS} * interval '1 millisecond' as until from (select clock_timestamp() as at) as now
    ), claimed as (
      update webhook_endpoints as e set lease_id = ${randomUUID()}, lease_owner = ${lifecycle.processId},
        due_at = clock.until
      from picked, clock
      where e.id = picked.id
      returning e.*
    )
    select ${selectClaim(sql)} from claimed as e, clock`
}

export type PlannedCall = EventRow & { attempts: number; failingForMs: number | null }

/** A call that has ended; `at` is database time, and `error` is what merchants may know. */
export type MadeCall = { event: PlannedCall; sent: SendResult; error: string | null; at: Date }

export type Wave = {
  calls: readonly MadeCall[]
  parked: readonly EventRow[]
  /** Retries that end without a call. */
  dropped: readonly number[]
  /** Up to here every event of the feed was accepted, waits as a retry, or is not wanted. */
  cursor: number
  ahead: readonly number[]
  /** Keep the lease for another wave, provided the endpoint accepts events. */
  goesOn: boolean
}

/** Delay after the n-th failure of a delivery (s). */
const DELAYS_S = [5, 30, 120, 600, 3_600, 10_800, 21_600]
const MAX_DELAY_S = 21_600

/** A random share is added, so that deliveries which failed together are not retried together. */
const JITTER = 0.1

/** An endpoint is disabled after every delivery has failed for this long (ms). */
export const DISABLE_AFTER_MS = 5 * 86_400_000

/** A failing endpoint is called again after a quarter of the time for which it has failed, within these bounds. */
const PAUSE_MS = { min: 1_000, max: 60_000 }

const MADE = {
  ...pickColumns(webhookAttempts, 'eventId', 'type', 'transactionId', 'attempt', 'sentAt'),
  ...pickColumns(webhookAttempts, 'durationMs', 'httpStatus', 'error', 'answer'),
  ...pickColumns(webhookRetries, 'merchantCode'),
  delayMs: 'float8',
}
const PARKED = pickColumns(webhookRetries, 'eventId', 'merchantCode', 'transactionId')

function describeCall({ event, sent, error, at }: MadeCall) {
  const delayS = DELAYS_S[event.attempts] ?? MAX_DELAY_S
  const delayMs = delayS * 1000 * (1 + JITTER * Math.random())
  const made = { eventId: event.id, attempt: event.attempts + 1, sentAt: at.toISOString() }
  return { ...event, ...sent, ...made, httpStatus: sent.status, error, delayMs }
}

export type Recorded = Claim & {
  disabledReason: 'gone' | 'failing' | null
  failingSince: string | null
}

/**
 * Records the attempts, the retries and the state of the endpoint in one commit.
 *
 * An endpoint fails once no call of a wave was accepted. After a single failed call the next one is made at once, to
 * find out whether the event or the endpoint is at fault. The first success ends the failure, and retries that failed
 * only during it become due. Those that failed before keep their backoff: the endpoint refuses these events.
 * @returns undefined if the lease was lost: nothing is recorded
 */
export async function recordWave(
  { db: { sql } }: Pick<Context, 'db'>,
  claim: Claim,
  wave: Wave,
): Promise<Recorded | undefined> {
  const { calls, dropped } = wave
  const accepted = calls.flatMap(({ event, error }) => (error === null ? [event.id] : []))
  const isAccepted = accepted.length > 0
  const hasFailed = !isAccepted && calls.some(({ sent }) => sent !== UNWRITABLE)
  const isGone = calls.some(({ sent }) => sent.status === 410)
  const keepsLease = wave.goesOn && !hasFailed && !isGone
  const record = async (tx: Tx) => {
    const [row] = await tx<Recorded[]>`
      with endpoint as materialized (
        select id, merchant_code as owner, failing_since, clock.at from webhook_endpoints, (select now() as at) as clock
        where id = ${claim.id} and lease_id = ${claim.leaseId} for no key update of webhook_endpoints
      ), ${recordRetries(tx, wave, isAccepted && claim.isFailing)}, judged as (
        select *, case when ${isGone} then 'gone'
          when ${hasFailed} and failing_since <= at - ${DISABLE_AFTER_MS}::float8 * interval '1 millisecond'
          then 'failing' end as reason,
          at + least(${PAUSE_MS.max} * interval '1 millisecond', greatest(
            ${PAUSE_MS.min} * interval '1 millisecond', (at - coalesce(failing_since, at)) / 4)) as paused_until
        from endpoint
      ), written as (
      update webhook_endpoints as e set cursor = greatest(e.cursor, ${wave.cursor}::bigint),
        ahead = ${writeIds(wave.ahead)}::bigint[], disabled_reason = clock.reason,
        disabled_at = case when clock.reason is not null then clock.at end,
        failing_since = case when ${hasFailed || isGone} then coalesce(e.failing_since, clock.at)
          when not ${isAccepted} then e.failing_since end,
        lease_id = case when ${keepsLease} then e.lease_id end,
        lease_owner = case when ${keepsLease} then e.lease_owner end,
        due_at = case when ${keepsLease} then e.due_at
          when ${!hasFailed} or (e.failing_since is null and ${calls.length === 1}) then clock.at
          else clock.paused_until end
      from judged as clock where e.id = clock.id
      returning e.*
      )
      select ${selectClaim(tx)}, e.disabled_reason as "disabledReason", e.failing_since::text as "failingSince"
      from written as e, judged as clock`
    if (!row) return { value: undefined }
    const end = () => endRetries(tx, claim, [...accepted, ...dropped])
    const isChanged = row.disabledReason !== null || row.isFailing !== claim.isFailing
    if (!isChanged) return { value: row, last: end }
    // The event of the change shows what is left.
    await end()
    const now = row.isFailing ? 'failing' : 'recovered'
    await recordCondition(tx, [row.id], row.disabledReason === null ? now : 'disabled')
    return { value: row }
  }
  return await runPipelined(sql, { open: () => Promise.resolve(), work: record })
}

/** A statement of its own: Citus does not plan a delete of found rows beside an insert. */
function endRetries(tx: Tx, { id }: Claim, eventIds: readonly number[]) {
  return tx`
    delete from webhook_retries as e using (
      select ${id}::uuid as endpoint_id, unnest(${writeIds(eventIds)}::bigint[]) as event_id
    ) as k cross join lateral (
      select ctid as place from webhook_retries as r where ${tx.unsafe(byKey('r', RETRY, 'k'))} limit 1
    ) as r where e.ctid = r.place`
}

function recordRetries(tx: Tx, { calls, parked }: Wave, isHealed: boolean) {
  const waiting = parked.map((event) => ({ ...event, eventId: event.id }))
  return tx`made as materialized (
      select m.*, endpoint.* from ${rowSet(tx, 'm', MADE, calls.map(describeCall))} cross join endpoint
    ), logged as (
      insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
        duration_ms, http_status, error, answer)
      select owner, id, event_id, type, transaction_id, attempt, sent_at, duration_ms, http_status, error, answer
      from made order by ordinality
    ), failed as (
      insert into webhook_retries as r (endpoint_id, event_id, merchant_code, transaction_id, attempts, due_at,
        failing_since, last_error)
      select id, event_id, merchant_code, transaction_id, attempt, at + delay_ms * interval '1 millisecond',
        greatest(at, failing_since), error
      from made where error is not null
      on conflict (event_id, endpoint_id) do update set attempts = excluded.attempts, due_at = excluded.due_at,
        last_error = excluded.last_error, failing_since = coalesce(r.failing_since, excluded.failing_since)
    ), parked as (
      insert into webhook_retries (endpoint_id, event_id, merchant_code, transaction_id)
      select endpoint.id, p.event_id, p.merchant_code, p.transaction_id
      from ${rowSet(tx, 'p', PARKED, waiting)} cross join endpoint
      on conflict do nothing
    ), woken as (
      update webhook_retries as r set due_at = endpoint.at from endpoint
      where ${isHealed} and r.endpoint_id = endpoint.id and r.attempts > 1 and r.due_at > endpoint.at
        and r.failing_since >= endpoint.failing_since
        and r.event_id <> all(${writeIds(calls.map(({ event }) => event.id))}::bigint[])
    )`
}

/** Writes an array as text, because the driver would have to know the type of an array parameter. */
function writeIds(ids: readonly number[]): string {
  return `{${ids.join()}}`
}

/** Returns a claim once its calls have ended: the endpoint is due at once, also if the lease was taken away. */
export async function releaseClaim(
  { db: { sql }, lifecycle }: Pick<Context, 'db' | 'lifecycle'>,
  { id, leaseId }: Pick<Claim, 'id' | 'leaseId'>,
): Promise<void> {
  await sql`
    update webhook_endpoints set lease_id = null, lease_owner = null, due_at = now()
    where id = ${id} and lease_owner = ${lifecycle.processId} and (lease_id is null or lease_id = ${leaseId})`
}
