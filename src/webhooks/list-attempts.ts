import type { Context } from '../context.ts'
import type { Position } from '../platform/http/page.ts'
import { type EndpointRequest, findEndpoint } from './find-endpoints.ts'
import type { AttemptRow } from './view.ts'

export type AttemptFilter = { outcome?: 'delivered' | 'failed' | undefined }

/**
 * Lists the attempts of an endpoint, newest first, and one more than `limit`: it shows that there is a next page.
 * @throws DomainError `webhook_endpoint_not_found`
 */
export async function listAttempts(
  ctx: Pick<Context, 'sql'>,
  request: Omit<EndpointRequest, 'access'>,
  { outcome }: AttemptFilter,
  limit: number,
  after: Position | undefined,
): Promise<AttemptRow[]> {
  const { sql } = ctx
  const { merchantCode } = await findEndpoint(ctx, request)
  const ofOutcome = {
    delivered: sql`and error is null`,
    failed: sql`and error is not null`,
  }
  return await sql<AttemptRow[]>`
    select a.id::text, a.merchant_code as "merchantCode", a.event_id::text as "eventId", a.type,
      a.transaction_id as "transactionId", a.attempt, a.sent_at::text as "sentAt",
      a.duration_ms as "durationMs", a.http_status as status, a.error, a.answer,
      (select due_at::text from webhook_deliveries as d
        where d.endpoint_id = a.endpoint_id and d.event_id = a.event_id) as "nextAttemptAt"
    from (
      select * from webhook_attempts
      where merchant_code = ${merchantCode} and endpoint_id = ${request.id}
        ${after ? sql`and id < ${after.id}` : sql``} ${outcome ? ofOutcome[outcome] : sql``}
      order by id desc limit ${limit + 1}) as a
    order by a.id desc`
}
