import { and, eq, isNull, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import { webhookDeliveries, webhookEndpoints } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { WebhookDelivery } from './claim-deliveries.ts'
import type { SendResult } from './sender.ts'

/** Delays after the n-th failure of a delivery (s); further failures repeat the last. */
const DELAYS_S = [5, 30, 120, 600, 3_600, 10_800, 21_600]
const MAX_DELAY_S = 21_600

/** Maximum share added at random, so that deliveries which failed together do not retry together. */
const JITTER = 0.1

/** An endpoint is disabled once every delivery has failed for this long (ms). */
export const DISABLE_AFTER_MS = 5 * 86_400_000

/** Returns the delay before the next attempt, after the n-th failure of a delivery (ms). */
export function computeRetryDelay(failures: number, random: () => number = Math.random): number {
  const base = DELAYS_S[failures - 1] ?? MAX_DELAY_S
  return Math.round(base * 1000 * (1 + JITTER * random()))
}

/** An attempt that was made: when (database time), with which type of event, and what came back. */
export type MadeAttempt = SendResult & { at: Date; type: string }

/** The delivery that an attempt belongs to; `attempts` counts those before it. */
export type AttemptedDelivery = Pick<
  WebhookDelivery,
  'endpointId' | 'eventId' | 'owner' | 'transactionId' | 'attempts'
>

/**
 * The statement that adds an attempt to the log, for a common table expression.
 * @param ended the name of an expression with a row if the claim was still held; otherwise nothing is added
 */
export function insertAttempt(
  sql: Tx,
  { endpointId, eventId, owner, transactionId, attempts }: AttemptedDelivery,
  { at, type, durationMs, status, error, answer }: MadeAttempt,
  ended: string,
) {
  return sql`
    insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
      duration_ms, http_status, error, answer)
    select ${owner}, ${endpointId}, ${eventId}, ${type}, ${transactionId}, ${attempts + 1}, ${at.toISOString()},
      ${durationMs}, ${status}, ${error}, ${answer} from ${sql(ended)}`
}

/** Makes everything that waits due at once, as if nothing had failed. What is being sent keeps its lease. */
export async function forgetFailures(tx: Tx, endpointId: string): Promise<void> {
  await build(tx)
    .update(webhookEndpoints)
    .set({ failingSince: null, probeAt: null })
    .where(eq(webhookEndpoints.id, endpointId))
  await build(tx)
    .update(webhookDeliveries)
    .set({ dueAt: sql`now()`, attempts: 0, failingSince: null })
    .where(and(eq(webhookDeliveries.endpointId, endpointId), isNull(webhookDeliveries.leaseId)))
}

/** The result of an attempt. `lost`: its lease had passed to another worker, and nothing was recorded. */
export type DeliveryResult =
  /**
   * `removed`: the event was deleted at the end of its retention before it was delivered. `withheld`: the endpoint's key
   * may no longer read it.
   */
  | { outcome: 'delivered' | 'removed' | 'withheld' | 'lost' }
  | { outcome: 'failed'; failingForMs: number }
  | { outcome: 'disabled'; reason: 'gone' | 'failing'; failingSince: string }

/** Limits of the pause between calls to a failing endpoint: a quarter of the time it has failed so far (ms). */
const PROBE_MS = { min: 1_000, max: 60_000 }

type Claimed = Pick<WebhookDelivery, 'endpointId' | 'eventId' | 'leaseId' | 'probes'>
type Attempted = Claimed & AttemptedDelivery

/**
 * Records an accepted event: deletes the delivery, and adds the attempt to the log. The first success of a failing endpoint marks it healthy, and
 * deliveries that failed only in this outage become due at once (after a first failure they are within seconds).
 * Deliveries that had failed before it keep their backoff: the endpoint refuses these events in particular.
 * @returns whether the claim was still held
 */
export async function recordDelivered(
  { sql }: Pick<Context, 'sql'>,
  delivery: Attempted,
  attempt: MadeAttempt,
): Promise<boolean> {
  const { endpointId, eventId, leaseId } = delivery
  const [row] = await sql<{ ended: boolean }[]>`
    with failing as materialized (
      select id, failing_since from webhook_endpoints
      where id = ${endpointId} and failing_since is not null for no key update
    ), ended as materialized (
      delete from webhook_deliveries
      where endpoint_id = ${endpointId} and event_id = ${eventId} and lease_id = ${leaseId}
        and (select count(*) from failing) >= 0
      returning endpoint_id
    ), logged as (${insertAttempt(sql, delivery, attempt, 'ended')}
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
 * Records a failed attempt, also in the log: the delivery is due again by the retry schedule. The endpoint counts as failing from
 * its first failure on. The next call to it may go at once, to find out whether the event or the endpoint is at
 * fault; further calls follow at growing intervals. Five days after the first failure, or with a 410, the
 * endpoint is disabled; its pending deliveries stay.
 */
export async function recordFailed(
  { sql }: Pick<Context, 'sql'>,
  delivery: Attempted,
  attempt: MadeAttempt & { error: string },
): Promise<DeliveryResult> {
  const { endpointId, eventId, leaseId, probes, attempts } = delivery
  const { error } = attempt
  const gone = attempt.status === 410
  const { min, max } = PROBE_MS
  const waitMs = computeRetryDelay(attempts + 1)
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
    ), logged as (${insertAttempt(sql, delivery, attempt, 'failed')}
    ), judged as (
      select id, coalesce(endpoint.failing_since, now()) as since, endpoint.failing_since is null as first,
        endpoint.disabled_at, failed.failing_since as own, case when ${gone} then 'gone'
          when endpoint.failing_since <= now() - ${DISABLE_AFTER_MS}::float8 * interval '1 millisecond'
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
  if (!row) return { outcome: 'lost' }
  const { reason, since, failingForMs } = row
  if (reason) return { outcome: 'disabled', reason, failingSince: toIso(since) }
  return { outcome: 'failed', failingForMs }
}

type Failed = { reason: 'gone' | 'failing' | null; since: string; failingForMs: number }

/** Releases a claim that was not finished: the delivery is due at once, for any worker. */
export async function releaseDelivery(ctx: Pick<Context, 'sql'>, claim: Claimed): Promise<void> {
  const { sql } = ctx
  await endClaim(ctx, claim, sql`update webhook_deliveries set lease_id = null, due_at = now()`)
}

/**
 * Deletes a delivery that has nothing left to send.
 * @returns whether the claim was still held
 */
export function dropDelivery(ctx: Pick<Context, 'sql'>, claim: Claimed): Promise<boolean> {
  return endClaim(ctx, claim, ctx.sql`delete from webhook_deliveries`)
}

/** Ends a claim without a result. If it was a probe, the next call may probe the endpoint at once. */
async function endClaim(
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
