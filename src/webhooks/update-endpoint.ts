import { eq } from 'drizzle-orm'
import type { Access } from '../access/types.ts'
import { webhookEndpoints } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { type EventType, isEventType } from '../events/event.ts'
import { formatOrigin } from '../platform/outbound/url.ts'
import { build } from '../platform/postgres/query-builder.ts'
import { commitChange, ENDPOINT_PATH, type LockedEndpoint } from './commit-change.ts'
import type { WebhooksContext } from './context.ts'
import type { EndpointRequest } from './find-endpoints.ts'
import { forgetFailures } from './forget-failures.ts'
import { filterTypes, requireUrl } from './register-endpoint.ts'

/** What to change; at least one member. */
export type EndpointChange = { url?: string | undefined; types?: EventType[] | undefined }

/**
 * Changes an endpoint's address, its types or both. Other types apply to events that were not fanned out yet. At
 * another address the failures of the old one no longer count, and what waits is due at once; a disabled endpoint stays
 * disabled.
 *
 * The caller has to be able to read everything that the endpoint gets, before and after the change: otherwise its key could lead
 * refund events to an address of its own.
 * @throws DomainError `webhook_endpoint_not_found`, `invalid_request` on `url` when its address is not allowed,
 *   `scope_missing`
 */
export async function updateEndpoint(
  ctx: WebhooksContext,
  request: EndpointRequest,
  { url, types }: EndpointChange,
): Promise<void> {
  const { access, id } = request
  // The name is resolved before the transaction: nothing calls the network while one is open.
  if (url !== undefined) await requireUrl(ctx, url)
  await commitChange(ctx, request, `PATCH ${ENDPOINT_PATH}`, async (tx, before) => {
    requireReadable(access, before)
    const next = filterTypes(access, (types ?? before.types).filter(isEventType))
    await build(tx)
      .update(webhookEndpoints)
      .set({ ...(types ? next : {}), ...(url === undefined ? {} : { url }) })
      .where(eq(webhookEndpoints.id, id))
    if (url !== undefined && url !== before.url) await forgetFailures(tx, id)
  })
  if (url === undefined) return
  ctx.log.info({ endpointId: id, to: formatOrigin(url) }, 'webhook endpoint has another address')
}

/**
 * Checks that a key may read what an endpoint gets.
 * @throws DomainError `scope_missing`
 */
export function requireReadable(
  access: Access,
  { types, withRefunds }: Pick<LockedEndpoint, 'types' | 'withRefunds'>,
): void {
  filterTypes(access, types.filter(isEventType))
  if (!withRefunds || access.scopes.includes('refunds:read')) return
  const detail = 'This key has no scope refunds:read, which the events of this endpoint require'
  throw new DomainError('scope_missing', detail)
}
