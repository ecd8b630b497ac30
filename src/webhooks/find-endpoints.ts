import { narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { Position } from '../http/list.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { EndpointRow } from './view.ts'

/** A request about one endpoint. `owners` are the merchant codes whose endpoints its key may see. */
export type EndpointRequest = { access: Access; owners: readonly string[]; id: string }

/**
 * Returns the merchant codes whose endpoints a key may see: its own; for a key of all accounts every one, and
 * `*` for the endpoints that receive the events of all. `named` narrows them to one.
 */
export function listVisibleOwners(access: Access, named: string | undefined): string[] {
  const own = narrowMerchants(access, named)
  const all = access.merchantCode === EVERY_MERCHANT && (named ?? EVERY_MERCHANT) === EVERY_MERCHANT
  return all ? [...own, EVERY_MERCHANT] : [...own]
}

/** Lists endpoints, newest first, and one more than `limit`: it shows that there is a next page. */
export async function listEndpoints(
  { sql }: Pick<Context, 'sql'>,
  owners: readonly string[],
  limit: number,
  after: Position | undefined,
): Promise<EndpointRow[]> {
  return await sql<EndpointRow[]>`
    ${selectEndpoints(sql)}
    where merchant_code = any(${[...owners]})
      and ${after ? sql`(created_at, id) < (${after.time}::timestamptz, ${after.id}::uuid)` : sql`true`}
    order by created_at desc, id desc limit ${limit + 1}`
}

/** @throws DomainError `webhook_endpoint_not_found` */
export async function findEndpoint(
  { sql }: Pick<Context, 'sql'>,
  { owners, id }: Omit<EndpointRequest, 'access'>,
): Promise<EndpointRow> {
  const [row] = await sql<EndpointRow[]>`
    ${selectEndpoints(sql)} where merchant_code = any(${[...owners]}) and id = ${id}`
  if (!row) throw endpointNotFound(id)
  return row
}

export function endpointNotFound(id: string): DomainError {
  return new DomainError('webhook_endpoint_not_found', `There is no webhook endpoint ${id}`)
}

function selectEndpoints(sql: Tx) {
  return sql`
    select id, merchant_code as "merchantCode", url, types, created_at::text as "createdAt",
      with_refunds as "withRefunds",
      (select k.name from api_keys as k where coalesce(k.chain_id, k.id) = e.key_chain_id
        order by k.created_at desc, k.id limit 1) as owner,
      failing_since::text as "failingSince", disabled_at::text as "disabledAt",
      disabled_reason as "disabledReason",
      case when previous_secret_until > now() then previous_secret_until::text end as "previousSecretValidUntil",
      (select count(*) from webhook_deliveries as d where d.endpoint_id = e.id) as pending,
      (select last_error from webhook_deliveries as d
        where d.endpoint_id = e.id and last_error is not null
        order by due_at desc limit 1) as "lastError"
    from webhook_endpoints as e`
}
