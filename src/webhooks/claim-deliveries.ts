import type { Context } from '../context.ts'
import type { OrderIds } from '../db/order-facts.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { type EventRow, listOrderIds } from '../events/event.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { liveKeyOf, mayRead } from './owner.ts'
import type { StoredSecrets } from './secrets.ts'
import { CALL_MS } from './sender.ts'

/** A delivery that only this process may attempt, until the lease expires. */
export type WebhookDelivery = StoredSecrets & {
  endpointId: string
  eventId: number
  /** Fencing token: required to record the result. */
  leaseId: string
  /** Database time of the claim (ms since 1970), and `performance.now()` when its result arrived here. */
  claimedAt: number
  knownAt: number
  /** Whether this is the one call to a failing endpoint that checks if it has recovered. */
  probes: boolean
  attempts: number
  url: string
  /** The merchant code of the endpoint; `*` for all accounts. */
  owner: string
  /** Of the event. */
  merchantCode: string
  transactionId: string
  /** Whether the endpoint's key may read the event now. */
  isReadable: boolean
  /** The event; null when it was deleted at the end of its retention. */
  event: Omit<EventRow, 'id' | 'merchantCode' | 'transactionId' | 'namesRefund'> | null
}

/** Long enough for a call to finish, however it ends, and for its result to be recorded (ms). */
export const LEASE_MS = 4 * CALL_MS

/** Maximum of one claim. A literal in the statement: for a parameter the planner estimates too many rows. */
export const MAX_CLAIMED = 32

/** Calls in flight to one endpoint; two processes that claim at the same moment may reach twice as many. */
const MAX_IN_FLIGHT = 4

/**
 * Claims up to `limit` due deliveries: round-robin over the endpoints that have any, counting calls in flight,
 * so that no endpoint delays another, and for each endpoint the longest due first. A delivery is skipped while
 * an earlier one of its transaction exists, in whatever state: the events of a transaction arrive in order.
 *
 * Whether the endpoint's key may read the event is decided here again: it may have ended, or have lost a scope, since
 * the event was fanned out.
 *
 * A failing endpoint gets one call at a time, a probe, and none before `probe_at`, which the claim itself
 * advances: the endpoint's row is locked and read at its current value, so two processes never both probe it.
 * The first delivery of a transaction is looked up row by row, by index: as a join it can be quadratic. A delivery
 * that was changed between the statement's snapshot and its lock stays due for the next claim.
 * @param limit at most `MAX_CLAIMED`
 * @param probes how many of them may be probes
 */
export async function claimDeliveries(
  { sql, processId }: Pick<Context, 'sql' | 'processId'>,
  limit: number,
  probes: number,
): Promise<WebhookDelivery[]> {
  if (limit === 0) return []
  const leased = sql`now() + ${LEASE_MS} * interval '1 millisecond'`
  const rows = await sql<Row[]>`
    with open as materialized (
      select id, failing_since is not null as probes, k.scopes, k.roles, k.merchants,
        (select count(*) from webhook_deliveries as d
          where d.endpoint_id = e.id and d.lease_id is not null and d.due_at > now()) as held
      from webhook_endpoints as e cross join lateral ${liveKeyOf(sql)} as k
      where disabled_at is null and (probe_at is null or probe_at <= now())
        and exists (select from webhook_deliveries as d
          where d.endpoint_id = e.id and d.due_at <= now())
      for no key update of e skip locked
    ), due as materialized (
      select open.id as endpoint_id, open.probes, open.scopes, open.roles, open.merchants, d.event_id, d.due_at, d.place as row,
        held + row_number() over (partition by open.id order by d.due_at, d.event_id) as turn,
        row_number() over (partition by open.probes order by d.due_at) as place
      from open cross join lateral (
        select event_id, due_at, ctid as place from webhook_deliveries as d
        where d.endpoint_id = open.id and d.due_at <= now()
          and d.event_id = (select event_id from webhook_deliveries as own
            where ${sql.unsafe(byKey('own', ['endpoint_id', 'merchant_code', 'transaction_id'], 'd'))}, own.event_id
            limit 1)
        order by due_at limit case when open.probes then 1
          else greatest(0, ${MAX_IN_FLIGHT} - held) end for update skip locked) as d
    ), picked as materialized (
      select * from (
        select due.*, row_number() over (order by turn, due_at) as rank from due
        where not due.probes or place <= ${probes}::int) as ranked
      where rank <= ${limit}::int limit ${sql.unsafe(String(MAX_CLAIMED))}
    ), probed as (
      update webhook_endpoints as e set probe_at = ${leased}
      from picked where e.id = picked.endpoint_id and picked.probes
    ), claimed as (
      update webhook_deliveries as d set lease_id = gen_random_uuid(), lease_owner = ${processId}, due_at = ${leased}
      from picked where d.ctid = picked.row
      returning d.*, picked.probes, picked.scopes, picked.roles, picked.merchants
    )
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as "claimedAt",
      c.endpoint_id as "endpointId", c.event_id as "eventId", c.lease_id as "leaseId",
      c.probes, c.attempts, c.merchant_code as "merchantCode", c.transaction_id as "transactionId",
      e.url, e.merchant_code as owner, e.secret,
      case when e.previous_secret_until > now() then e.previous_secret end as "previousSecret",
      ${mayRead(sql, 'c', 'ev', EVENT_NAMES_REFUND_SQL)} as "isReadable",
      ev.type, ev.data::text as data, ev.at::text as at,
      ${sql.unsafe(listOrderIds('ev'))}
    from claimed as c join webhook_endpoints as e on e.id = c.endpoint_id
      left join events as ev on ev.id = c.event_id
    order by c.event_id`
  const knownAt = performance.now()
  return rows.map((row) => readRow(row, knownAt))
}

function readRow(
  { type, data, at, orderId, merchantTxnId, ...row }: Row,
  knownAt: number,
): WebhookDelivery {
  const event =
    type === null || data === null || at === null
      ? null
      : { type, data, at, orderId, merchantTxnId }
  return { ...row, knownAt, event }
}

type Row = Omit<WebhookDelivery, 'event' | 'knownAt'> & {
  type: string | null
  data: string | null
  at: string | null
} & OrderIds
