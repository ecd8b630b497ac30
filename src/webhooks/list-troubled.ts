import type { Context } from '../context.ts'

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
