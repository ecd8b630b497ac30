import type { Context } from '../context.ts'
import type { Position } from '../http/list.ts'
import { cutRead, EXAMINED, type PageRead } from '../platform/postgres/list-page.ts'
import { type EndpointRequest, findEndpoint } from './find-endpoints.ts'
import { REFUND_TYPES } from './owner.ts'
import { requireReadable } from './require-readable.ts'
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
