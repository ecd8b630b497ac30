import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { EVENT_TYPES, EVENTS } from '../events/event.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { cutRead, EXAMINED, type PageRead } from '../platform/postgres/list-page.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { RETRIES, RETRY } from './claim.ts'
import {
  countPendingSql,
  type EndpointRequest,
  readEndpoint,
  requireReadable,
} from './endpoints.ts'
import type { AttemptRow, EndpointRow } from './schemas.ts'

/** When the event of the attempt `a` is sent again; null if it has been accepted since. */
const nextAttempt = (sql: Sql) =>
  sql`(select due_at from webhook_retries as r where ${sql.unsafe(byKey('r', RETRY, 'a'))} limit 1)`

const REFUND_TYPES = EVENT_TYPES.filter((type) => EVENTS[type].scope === 'refunds:read')

/**
 * Lists the attempts of an endpoint, newest first, and one more than `limit` if there is a next page. As the endpoint
 * may have had other types before, attempts of refund events may have to be left out.
 * @throws DomainError `webhook_endpoint_not_found`, `scope_missing`
 */
export async function listAttempts(
  sql: Sql,
  request: EndpointRequest,
  outcome: 'delivered' | 'failed' | undefined,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<AttemptRow>> {
  const endpoint = await readEndpoint(sql, request)
  requireReadable(request.access, endpoint)
  const { merchantCode } = endpoint
  const isReadable = request.access.scopes.includes('refunds:read')
    ? sql`true`
    : sql`not type = any(${REFUND_TYPES})`
  // A partial index has only the failed ones.
  const ofIndex = outcome === 'failed' ? sql`and error is not null` : sql``
  const fits = outcome === 'delivered' ? sql`(error is null and ${isReadable})` : isReadable
  const most = sql.unsafe(String(EXAMINED))
  const rows = await sql<(AttemptRow & { fits: boolean; stops: boolean })[]>`
    select a.id::text, a.merchant_code as "merchantCode", a.event_id::text as "eventId", a.type,
      a.transaction_id as "transactionId", a.attempt, a.sent_at::text as "sentAt",
      a.duration_ms as "durationMs", a.http_status as status, a.error, a.answer,
      ${nextAttempt(sql)}::text as "nextAttemptAt", fits, stops
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

/** An attempt to deliver an event. For an event that was not sent yet, `attempt` is 0 and what follows it is null. */
export type SentEvent = {
  eventId: string
  type: string
  /** Null if the endpoint has been deleted since. */
  url: string | null
  attempt: number
  sentAt: string | null
  durationMs: number | null
  status: number | null
  /** Null if the endpoint accepted the event. */
  error: string | null
  /** Null if it was delivered. */
  nextAttemptAt: string | null
}

/** How many of the account's newest events are searched for those that an endpoint has not reached yet. */
const LOOKED_THROUGH = 500

/**
 * Lists the webhooks of a transaction, newest first, also those that wait for their first attempt. The same
 * transaction id may exist in another account, whose events are left out.
 */
export async function listSent(
  { db: { sql } }: Pick<Context, 'db'>,
  { merchantCode, transactionId }: TransactionKey,
  withRefunds: boolean,
  limit: number,
): Promise<SentEvent[]> {
  const owners = [merchantCode, EVERY_MERCHANT]
  const key = sql`(
    select owner as merchant_code, ${transactionId}::text as transaction_id
    from json_array_elements_text(${JSON.stringify(owners)}::json) as owner) as k`
  return await sql<SentEvent[]>`
    with newest as materialized (
      select id, type from (
        select id, type, transaction_id from events where merchant_code = ${merchantCode}
        order by id desc limit ${LOOKED_THROUGH}) as ev
      where transaction_id = ${transactionId}
    )
    select "eventId", type, url, attempt, "sentAt"::text, "durationMs", status, error, "nextAttemptAt"::text from (
      select w.event_id::text as "eventId", ${selectEvent(sql, 'w', merchantCode, withRefunds)} as type, w.url,
        0 as attempt, null::timestamptz as "sentAt", null::bigint as "durationMs", null::bigint as status,
        null as error, w.due_at as "nextAttemptAt", w.event_id as place
      from (
        select e.url, r.event_id, r.due_at
        from (
          select id as endpoint_id, url, ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
          from webhook_endpoints where merchant_code = any(${owners})
        ) as e cross join lateral (
          select * from webhook_retries as r
          where r.attempts = 0 and ${sql.unsafe(byKey('r', RETRIES, 'e'))} offset 0) as r
        union all
        select e.url, newest.id, null from webhook_endpoints as e join newest
          on newest.id > e.cursor and newest.id <> all(e.ahead) and newest.type = any(e.types)
        where e.merchant_code = any(${owners}) and e.disabled_at is null
      ) as w
      union all
      select a.event_id::text, ${selectEvent(sql, 'a', merchantCode, withRefunds)},
        (select url from webhook_endpoints as w where w.id = a.endpoint_id), a.attempt, a.sent_at, a.duration_ms,
        a.http_status, a.error,
        ${nextAttempt(sql)}, a.id
      from ${key} cross join lateral (
        select * from webhook_attempts as a
        where ${sql.unsafe(byTransaction('a'))} desc, a.id desc
        limit ${limit * READ_FOR_ONE}) as a
    ) as sent where type is not null order by "sentAt" desc nulls first, place desc limit ${limit}`
}

/** How many attempts are read for each one shown: some are of events that the caller may not read. */
const READ_FOR_ONE = 4

/** Selects the type of the event; null if it belongs to another account or may not be read. */
function selectEvent(sql: Sql, alias: string, merchantCode: string, withRefunds: boolean) {
  const isReadable = withRefunds
    ? sql`true`
    : sql`not (type = any(${[...REFUND_TYPES]}) or ${sql.unsafe(EVENT_NAMES_REFUND_SQL)})`
  return sql`(
    select type from events as e
    where e.id = ${sql(alias)}.event_id and e.merchant_code = ${merchantCode} and ${isReadable})`
}

export type TroubledEndpoint = Pick<
  EndpointRow,
  'id' | 'merchantCode' | 'url' | 'failingSince' | 'disabledAt' | 'disabledReason'
> & {
  nextAttemptAt: string | null
  pending: number
  attemptedAt: string | null
  httpStatus: number | null
  error: string | null
  answer: string | null
  /** Of the event. The account is null if the event was deleted, or is about the endpoint. */
  transactionId: string | null
  eventMerchantCode: string | null
}

const MOST_PENDING = 100

/** Lists the endpoints that fail or are disabled, longest first, and one more than `limit` if there are more. */
export async function listTroubledEndpoints(
  { db: { sql } }: Pick<Context, 'db'>,
  owners: readonly string[],
  limit: number,
): Promise<TroubledEndpoint[]> {
  return await sql<TroubledEndpoint[]>`
    select e.id, e.merchant_code as "merchantCode", e.url, e.failing_since::text as "failingSince",
      e.disabled_at::text as "disabledAt", e.disabled_reason as "disabledReason",
      case when e.disabled_at is null then greatest(e.due_at, (
        select min(due_at) from webhook_retries as r where r.endpoint_id = e.id))::text end as "nextAttemptAt",
      least(${MOST_PENDING}, ${sql.unsafe(countPendingSql('e', MOST_PENDING))}) as pending,
      a.sent_at::text as "attemptedAt", a.http_status as "httpStatus", a.error, a.answer,
      a.transaction_id as "transactionId",
      (select v.merchant_code from events as v where v.id = a.event_id and v.type not like 'webhook_endpoint.%')
        as "eventMerchantCode"
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
