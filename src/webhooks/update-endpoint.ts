import { eq } from 'drizzle-orm'
import { webhookEndpoints } from '../db/schema.ts'
import type { EventType } from '../events/event.ts'
import { filterByScope } from '../feed/filter-by-scope.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { commitChange, ENDPOINT_PATH } from './commit-change.ts'
import type { WebhooksContext } from './context.ts'
import type { EndpointRequest } from './find-endpoints.ts'
import { forgetFailures } from './forget-failures.ts'
import { requireUrl } from './register-endpoint.ts'
import { requireReadable } from './require-readable.ts'

/** What to change; at least one member. */
export type EndpointChange = { url?: string | undefined; types?: EventType[] | undefined }

/**
 * Changes an endpoint's address, its types or both. Other types apply to events that were not fanned out yet. At
 * another address the failures of the old one no longer count, and what waits is due at once; a disabled endpoint stays
 * disabled.
 *
 * The caller has to be able to read everything that the endpoint gets, before and after the change: otherwise its key could lead
 * refund events to an address of its own. Whoever gives it another address or other types owns it from then on: the end of
 * a stolen key ends what was led elsewhere with it, and the types are ones that the owner may read.
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
    const next = types && filterByScope(access, { types: [...new Set(types)] })
    const isMoved = url !== undefined && url !== before.url
    const values = {
      ...(next ? { types: [...next.types], withRefunds: next.withRefunds } : {}),
      ...(isMoved ? { url } : {}),
      ...(isMoved || next ? { keyChainId: access.chainId } : {}),
    }
    // The same address again is no change.
    if (Object.keys(values).length === 0) return
    await build(tx).update(webhookEndpoints).set(values).where(eq(webhookEndpoints.id, id))
    if (isMoved) await forgetFailures(tx, id)
  })
  if (url === undefined) return
  ctx.log.info({ endpointId: id, to: formatOrigin(url) }, 'webhook endpoint has another address')
}
