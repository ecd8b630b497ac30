import { z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import { isEventType } from '../events/event.ts'
import { filterByScope } from '../feed/read-feed.ts'
import { BODY_REFUSALS, describeRefusals } from '../http/describe.ts'
import { isUuid, MerchantCode } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { EndpointRow } from './view.ts'

/** An endpoint as it is before a change. */
export type LockedEndpoint = {
  merchantCode: string
  url: string
  types: string[]
  /** Whether it gets events that name a refund. */
  withRefunds: boolean
  isDisabled: boolean
  /** Whether the key or the person that it belongs to still has access. */
  isOwned: boolean
}

export const shared = { tags: ['Webhooks'], ...withScope('webhooks:write') }

/** The endpoint in a path. */
export const params = z.object({
  endpointId: z.string().openapi({
    description: 'The `id` of the endpoint; anything but a UUID is answered 404',
    example: '5f0c2f0e-2b0d-4f7a-9d2e-0f6f0a8f3c55',
  }),
})
export const query = z.strictObject({ merchantCode: MerchantCode })
export const refusals = describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found')

/** @throws DomainError `webhook_endpoint_not_found` for an id that is no UUID */
export function readRequest(
  access: Access,
  { endpointId }: z.infer<typeof params>,
  { merchantCode: named }: z.infer<typeof query>,
): EndpointRequest {
  const owners = listVisibleOwners(access, named)
  if (!isUuid(endpointId)) throw endpointNotFound(endpointId)
  // Lower case, as stored: the secret is encrypted with the id as its context.
  return { access, id: endpointId.toLowerCase(), owners }
}

/**
 * Checks that a key may read what an endpoint gets, before it repeats, redirects, signs or lists any of it. For an
 * endpoint that gets nothing that is the feed itself.
 * @throws DomainError `scope_missing`
 */
export function requireReadable(
  access: Access,
  { types, withRefunds }: Pick<LockedEndpoint, 'types' | 'withRefunds'>,
): void {
  filterByScope(access, { types: types.filter(isEventType) })
  const namesRefunds = withRefunds && types.some((type) => type.startsWith('discrepancy.'))
  if (namesRefunds) requireScope(access, 'refunds:read')
  if (types.length === 0) requireScope(access, 'payments:read')
}

function requireScope({ scopes }: Access, scope: 'payments:read' | 'refunds:read'): void {
  if (scopes.includes(scope)) return
  const detail = `This key has no scope ${scope}, which the events of this endpoint require`
  throw new DomainError('scope_missing', detail)
}

/** A request about one endpoint. `owners` are the merchant codes whose endpoints its key may see. */
export type EndpointRequest = { access: Access; owners: readonly string[]; id: string }

/**
 * Returns the merchant codes whose endpoints a key may see: its own; for a key of all accounts every one, and
 * `*` for the endpoints that receive the events of all. `named` narrows them to one.
 */
export function listVisibleOwners(access: Access, named: string | undefined): string[] {
  const own = narrowMerchants(access, named)
  const all = access.coversAll && (named ?? EVERY_MERCHANT) === EVERY_MERCHANT
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
      (select k.name from actors as k where k.chain_id = e.key_chain_id
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
