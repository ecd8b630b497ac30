import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { cutRead, EXAMINED, type PageRead } from '../platform/postgres/list-page.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type EndpointRequest, findEndpoint, requireReadable } from './find-endpoints.ts'
import { REFUND_TYPES } from './owner.ts'
import type { AttemptRow } from './view.ts'

export type AttemptFilter = { outcome?: 'delivered' | 'failed' | undefined }

/**
 * Lists the attempts of an endpoint, newest first: until there are more than `limit`, which show that there is a next
 * page, or so many were compared with the filter. The endpoint may have had other types before, of which the caller may
 * not read the refunds.
 * @throws DomainError `webhook_endpoint_not_found`, `scope_missing`
 */
export async function listAttempts(
  ctx: Pick<Context, 'sql'>,
  request: EndpointRequest,
  { outcome }: AttemptFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<AttemptRow>> {
  const { sql } = ctx
  const { merchantCode, types, withRefunds } = await findEndpoint(ctx, request)
  requireReadable(request.access, { types, withRefunds })
  const isReadable = request.access.scopes.includes('refunds:read')
    ? sql`true`
    : sql`not type = any(${REFUND_TYPES})`
  // Those that failed have an index of their own.
  const ofIndex = outcome === 'failed' ? sql`and error is not null` : sql``
  const fits = outcome === 'delivered' ? sql`(error is null and ${isReadable})` : isReadable
  const most = sql.unsafe(String(EXAMINED))
  const rows = await sql<(AttemptRow & { fits: boolean; stops: boolean })[]>`
    select a.id::text, a.merchant_code as "merchantCode", a.event_id::text as "eventId", a.type,
      a.transaction_id as "transactionId", a.attempt, a.sent_at::text as "sentAt",
      a.duration_ms as "durationMs", a.http_status as status, a.error, a.answer,
      (select due_at::text from webhook_deliveries as d
        where d.endpoint_id = a.endpoint_id and d.event_id = a.event_id) as "nextAttemptAt", fits, stops
    from (
      select *, ${fits} as fits, row_number() over (order by id desc) = ${most} as stops
      from (
        select * from webhook_attempts
        where merchant_code = ${merchantCode} and endpoint_id = ${request.id}
          ${after ? sql`and id < ${after.id}` : sql``} ${ofIndex}
        order by id desc limit ${most}) as a
    ) as a where fits or stops
    order by a.id desc limit ${limit + 1}`
  return cutRead(rows, limit)
}

/** An attempt to deliver an event of a transaction, or an event that was not sent yet. Times as the database writes them. */
export type SentEvent = {
  eventId: string
  type: string
  /** The endpoint's; null when it was deleted since. */
  url: string | null
  /** 0 for an event that was not sent yet; then what follows is null. */
  attempt: number
  sentAt: string | null
  durationMs: number | null
  status: number | null
  /** Null when the endpoint accepted the event. */
  error: string | null
  /** When it is sent again, or for the first time; null when it was delivered. */
  nextAttemptAt: string | null
}

const OF_TRANSACTION = ['merchant_code', 'transaction_id']
const OF_ENDPOINT = ['endpoint_id', ...OF_TRANSACTION]

/**
 * Lists the webhooks of a transaction, newest first: those that wait for their first attempt, and the attempts made.
 * Endpoints of all accounts get events of others with the same transaction id, which are left out.
 * @param withRefunds whether the caller may read refunds
 * @returns `limit` at most
 */
export async function listSent(
  { sql }: Pick<Context, 'sql'>,
  { merchantCode, transactionId }: TransactionKey,
  withRefunds: boolean,
  limit: number,
): Promise<SentEvent[]> {
  const owners = JSON.stringify([merchantCode, EVERY_MERCHANT])
  const key = sql`(
    select value as merchant_code, ${transactionId}::text as transaction_id
    from json_array_elements_text(${owners}::json)) as k`
  return await sql<SentEvent[]>`
    select "eventId", type, url, attempt, "sentAt"::text, "durationMs", status, error, "nextAttemptAt"::text from (
      select d.event_id::text as "eventId", ${selectEvent(sql, 'd', merchantCode, withRefunds)} as type, w.url,
        0 as attempt, null::timestamptz as "sentAt", null::bigint as "durationMs", null::bigint as status,
        null as error, d.due_at as "nextAttemptAt", d.event_id as place
      from (
        select id as endpoint_id, url, ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
        from webhook_endpoints where merchant_code in (${merchantCode}, ${EVERY_MERCHANT})
      ) as w cross join lateral (
        select * from webhook_deliveries as d
        where d.attempts = 0 and ${sql.unsafe(byKey('d', OF_ENDPOINT, 'w'))} offset 0) as d
      union all
      select a.event_id::text, ${selectEvent(sql, 'a', merchantCode, withRefunds)},
        (select url from webhook_endpoints as w where w.id = a.endpoint_id), a.attempt, a.sent_at, a.duration_ms,
        a.http_status, a.error,
        (select due_at from webhook_deliveries as d where d.endpoint_id = a.endpoint_id and d.event_id = a.event_id),
        a.id
      from ${key} cross join lateral (
        select * from webhook_attempts as a
        where ${sql.unsafe(byKey('a', OF_TRANSACTION, 'k'))} desc, a.id desc
        limit ${limit * READ_FOR_ONE}) as a
    ) as sent where type is not null order by "sentAt" desc nulls first, place desc limit ${limit}`
}

/** Attempts read for one that is shown: some are of events that the caller may not read. */
const READ_FOR_ONE = 4

/** Selects the type of the event, or null if it is of another account or may not be read. */
function selectEvent(sql: Sql, alias: string, merchantCode: string, withRefunds: boolean) {
  const isReadable = withRefunds
    ? sql`true`
    : sql`not (type = any(${[...REFUND_TYPES]}) or ${sql.unsafe(EVENT_NAMES_REFUND_SQL)})`
  return sql`(
    select type from events as e
    where e.id = ${sql(alias)}.event_id and e.merchant_code = ${merchantCode} and ${isReadable})`
}

/** An endpoint that fails, or was disabled, with its newest failed attempt. */
export type TroubledEndpoint = {
  id: string
  /** The owner: `*` for the events of every account. */
  merchantCode: string
  url: string
  failingSince: string | null
  disabledAt: string | null
  disabledReason: 'gone' | 'failing' | 'key_ended' | null
  /** When the next call is due; null while it is disabled. */
  nextAttemptAt: string | null
  /** Events that wait for it, counted up to 100. */
  pending: number
  attemptedAt: string | null
  httpStatus: number | null
  error: string | null
  answer: string | null
  /** The transaction of the event of that attempt; the account is null once the event was deleted. */
  transactionId: string | null
  eventMerchantCode: string | null
}

/**
 * Lists the endpoints that fail or are disabled, longest first. An account has at most twenty endpoints.
 * @param owners the merchant codes whose endpoints the caller may see
 * @returns at most `limit` + 1
 */
export async function listTroubledEndpoints(
  { sql }: Pick<Context, 'sql'>,
  owners: readonly string[],
  limit: number,
): Promise<TroubledEndpoint[]> {
  return await sql<TroubledEndpoint[]>`
    select e.id, e.merchant_code as "merchantCode", e.url, e.failing_since::text as "failingSince",
      e.disabled_at::text as "disabledAt", e.disabled_reason as "disabledReason",
      case when e.disabled_at is null then greatest(e.probe_at, (
        select min(due_at) from webhook_deliveries as d where d.endpoint_id = e.id))::text end as "nextAttemptAt",
      (select count(*) from (
        select from webhook_deliveries as d where d.endpoint_id = e.id limit 100) as d) as pending,
      a.sent_at::text as "attemptedAt", a.http_status as "httpStatus", a.error, a.answer,
      a.transaction_id as "transactionId", coalesce(
        (select d.merchant_code from webhook_deliveries as d
          where d.endpoint_id = e.id and d.event_id = a.event_id),
        (select v.merchant_code from events as v where v.id = a.event_id)) as "eventMerchantCode"
    from (
      select * from webhook_endpoints
      where merchant_code = any(${[...owners]}) and (failing_since is not null or disabled_at is not null)
      order by coalesce(failing_since, disabled_at), id limit ${limit + 1}
    ) as e left join lateral (
      select * from webhook_attempts as a
      where a.merchant_code = e.merchant_code and a.endpoint_id = e.id and a.error is not null
      order by a.merchant_code, a.endpoint_id, a.id desc limit 1) as a on true
    order by coalesce(e.failing_since, e.disabled_at), e.id`
}
