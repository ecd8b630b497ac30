import type { Context } from '../context.ts'
import { toIso } from '../db/client.ts'
import type { Delivery } from './claim.ts'
import { GIVE_UP_AFTER_MS, waitAfter } from './schedule.ts'

/** Every way the call of a delivery can end. */
export const DELIVERY_ENDS = [
  'delivered',
  'failed',
  'disabled',
  'removed',
  'lost',
] as const satisfies Settled['end'][]

/** What became of a delivery; `lost` when its lease had gone to somebody else and nothing was written. */
export type Settled =
  /** `removed`: the event was, for its age, before anybody took it. */
  | { end: 'delivered' | 'removed' | 'lost' }
  | { end: 'failed'; failingForMs: number }
  | { end: 'disabled'; reason: 'gone' | 'failing'; failingSince: string }

/** How long nothing goes to an endpoint that fails: a quarter of how long it has failed so far, within these (ms). */
const PROBE_MS = { min: 1_000, max: 60_000 }

type Claimed = Pick<Delivery, 'endpointId' | 'eventId' | 'leaseId' | 'probes'>

/**
 * The event was taken: the delivery is gone. With the first one that a failing endpoint takes it counts as
 * well again, and what failed in this outage alone is due at once (after a first failure it is within
 * seconds). What failed before it too keeps its backoff: such an event is refused, whatever else is taken.
 * @returns whether the claim was still held
 */
export async function endDelivery(
  { sql }: Pick<Context, 'sql'>,
  { endpointId, eventId, leaseId }: Claimed,
): Promise<boolean> {
  const [row] = await sql<{ ended: boolean }[]>`
    with failing as materialized (
      select id, failing_since from webhook_endpoints
      where id = ${endpointId} and failing_since is not null for no key update
    ), ended as materialized (
      delete from webhook_deliveries
      where endpoint_id = ${endpointId} and event_id = ${eventId} and lease_id = ${leaseId}
        and (select count(*) from failing) >= 0
      returning endpoint_id
    ), healed as (
      update webhook_endpoints set failing_since = null, probe_at = null
      where id in (select id from failing) and id in (select endpoint_id from ended)
      returning id
    ), woken as (
      update webhook_deliveries as d set due_at = now() from failing, healed
      where d.endpoint_id = healed.id and failing.id = healed.id and d.lease_id is null
        and d.attempts > 1 and d.due_at > now() and d.failing_since >= failing.failing_since
    )
    select exists (select from ended) as ended`
  return row?.ended ?? false
}

/**
 * The event was not taken: due again by the schedule. The endpoint fails from now on, if it did not before:
 * the next call may go at once, to see whether it is this event or the receiver; after that they go with
 * growing pauses. Five days after its first failure, or with a 410, it is disabled; what waits for it stays.
 */
export async function failDelivery(
  { sql }: Pick<Context, 'sql'>,
  { endpointId, eventId, leaseId, probes, attempts }: Claimed & { attempts: number },
  { error, gone }: { error: string; gone: boolean },
): Promise<Settled> {
  const { min, max } = PROBE_MS
  const waitMs = waitAfter(attempts + 1)
  const [row] = await sql<Failed[]>`
    with endpoint as materialized (
      select id, failing_since, disabled_at from webhook_endpoints
      where id = ${endpointId} for no key update
    ), failed as (
      update webhook_deliveries as d set lease_id = null, attempts = d.attempts + 1,
        due_at = now() + ${waitMs} * interval '1 millisecond', last_error = ${error},
        failing_since = coalesce(d.failing_since, greatest(now(), endpoint.failing_since))
      from endpoint
      where d.endpoint_id = endpoint.id and d.event_id = ${eventId} and d.lease_id = ${leaseId}
      returning d.endpoint_id, d.failing_since
    ), judged as (
      select id, coalesce(endpoint.failing_since, now()) as since, endpoint.failing_since is null as first,
        endpoint.disabled_at, failed.failing_since as own, case when ${gone} then 'gone'
          when endpoint.failing_since <= now() - ${GIVE_UP_AFTER_MS}::float8 * interval '1 millisecond'
          then 'failing' end as reason
      from endpoint join failed on failed.endpoint_id = endpoint.id
    ), marked as (
      update webhook_endpoints as e set failing_since = since,
        disabled_at = case when reason is null then e.disabled_at else coalesce(e.disabled_at, now()) end,
        disabled_reason = coalesce(e.disabled_reason, reason),
        probe_at = greatest(case when ${probes} then null else e.probe_at end,
          case when first then now() else now() + least(${max} * interval '1 millisecond',
            greatest(${min} * interval '1 millisecond', (now() - since) / 4)) end)
      from judged where e.id = judged.id
    )
    select case when disabled_at is null then reason end as reason, since::text,
      (extract(epoch from now() - own) * 1000)::float8 as "failingForMs"
    from judged`
  if (!row) return { end: 'lost' }
  const { reason, since, failingForMs } = row
  if (reason) return { end: 'disabled', reason, failingSince: toIso(since) }
  return { end: 'failed', failingForMs }
}

type Failed = { reason: 'gone' | 'failing' | null; since: string; failingForMs: number }

/** Gives a claim back that was not worked on to the end: it is due at once, for anybody. */
export async function releaseDelivery(ctx: Pick<Context, 'sql'>, claim: Claimed): Promise<void> {
  const { sql } = ctx
  await handBack(ctx, claim, sql`update webhook_deliveries set lease_id = null, due_at = now()`)
}

/** There is nothing to send any more. @returns whether the claim was still held */
export function dropDelivery(ctx: Pick<Context, 'sql'>, claim: Claimed): Promise<boolean> {
  return handBack(ctx, claim, ctx.sql`delete from webhook_deliveries`)
}

/** Ends a claim without a word about the receiver: who was to find out leaves that to the next. */
async function handBack(
  { sql }: Pick<Context, 'sql'>,
  { endpointId, eventId, leaseId, probes }: Claimed,
  end: ReturnType<Context['sql']>,
): Promise<boolean> {
  const [row] = await sql<{ ended: boolean }[]>`
    with endpoint as materialized (
      select id from webhook_endpoints where id = ${endpointId} for no key update
    ), ended as (
      ${end} where endpoint_id in (select id from endpoint) and event_id = ${eventId}
        and lease_id = ${leaseId}
      returning endpoint_id
    ), opened as (
      update webhook_endpoints set probe_at = now()
      where id in (select endpoint_id from ended) and ${probes}
    )
    select exists (select from ended) as ended`
  return row?.ended ?? false
}
