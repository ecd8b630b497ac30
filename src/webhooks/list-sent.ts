import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { REFUND_TYPES } from './owner.ts'

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
