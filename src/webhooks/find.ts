import { type Access, narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { DomainError } from '../errors.ts'
import type { Position } from '../http/page.ts'
import type { EndpointRow } from './view.ts'

/** A request about one endpoint: who asks, and whose endpoints the asker may see. */
export type Asked = { access: Access; holders: readonly string[]; id: string }

/**
 * Whose endpoints a key may see: of its account, or, with a key of all, those of every account and those
 * that belong to all; or of the one that is named.
 */
export function narrowHolders(access: Access, named: string | undefined): string[] {
  const own = narrowMerchants(access, named)
  const all = access.merchantCode === EVERY_MERCHANT && (named ?? EVERY_MERCHANT) === EVERY_MERCHANT
  return all ? [...own, EVERY_MERCHANT] : [...own]
}

/** Endpoints, newest first; one more than `limit`, which says that there is a next page. */
export async function listEndpoints(
  ctx: Context,
  holders: readonly string[],
  limit: number,
  after: Position | undefined,
): Promise<EndpointRow[]> {
  const { sql } = ctx
  return await sql<EndpointRow[]>`
    ${selectEndpoints(sql)}
    where merchant_code = any(${[...holders]})
      and ${after ? sql`(created_at, id) < (${after.time}::timestamptz, ${after.id}::uuid)` : sql`true`}
    order by created_at desc, id desc limit ${limit + 1}`
}

/** @throws DomainError `webhook_endpoint_not_found` */
export async function findEndpoint(
  ctx: Context,
  { holders, id }: Omit<Asked, 'access'>,
): Promise<EndpointRow> {
  const [row] = await ctx.sql<EndpointRow[]>`
    ${selectEndpoints(ctx.sql)} where merchant_code = any(${[...holders]}) and id = ${id}`
  if (!row) throw endpointNotFound(id)
  return row
}

export function endpointNotFound(id: string): DomainError {
  return new DomainError('webhook_endpoint_not_found', `There is no webhook endpoint ${id}`)
}

function selectEndpoints(sql: Tx) {
  return sql`
    select id, merchant_code as "merchantCode", url, types, created_at::text as "createdAt",
      failing_since::text as "failingSince", disabled_at::text as "disabledAt",
      disabled_reason as "disabledReason",
      (select count(*) from webhook_deliveries as d where d.endpoint_id = e.id) as pending,
      (select last_error from webhook_deliveries as d
        where d.endpoint_id = e.id and last_error is not null
        order by due_at desc limit 1) as "lastError"
    from webhook_endpoints as e`
}
