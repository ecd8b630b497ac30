import { createRoute, type OpenAPIHono } from '@hono/zod-openapi'
import { eq } from 'drizzle-orm'
import { webhookEndpoints } from '../db/schema.ts'
import type { EventType } from '../events/event.ts'
import { filterByScope } from '../feed/read-feed.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import type { HttpEnv } from '../http/problems.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { commitChange, ENDPOINT_PATH } from './change-endpoint.ts'
import type { WebhooksContext } from './context.ts'
import { deliveryRoutes } from './delivery-routes.ts'
import {
  type EndpointRequest,
  findEndpoint,
  params,
  query,
  readRequest,
  refusals,
  requireReadable,
  shared,
} from './find-endpoints.ts'
import { forgetFailures } from './record-result.ts'
import { requireUrl } from './register-endpoint.ts'
import { rotateSecret } from './rotate-secret.ts'
import { webhookRoutes } from './routes.ts'
import { Endpoint, EndpointChange, RotatedSecret, SecretRotation, showEndpoint } from './view.ts'

/** What to change; at least one member. */
type Change = { url?: string | undefined; types?: EventType[] | undefined }

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
  { url, types }: Change,
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

const update = createRoute({
  method: 'patch',
  path: ENDPOINT_PATH,
  operationId: 'updateWebhookEndpoint',
  summary: 'Change the address or the types of an endpoint',
  description:
    'Other types apply to events from now on; what waits is sent to the new address. The key has to be able to read all types that the endpoint gets.',
  ...shared,
  request: {
    params,
    query,
    body: { content: { 'application/json': { schema: EndpointChange } }, required: true },
  },
  responses: { 200: describeResponse('The endpoint after the change', Endpoint), ...refusals },
})

const rotate = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/rotate-secret`,
  operationId: 'rotateWebhookSecret',
  summary: 'Give an endpoint a new secret, beside which the one before stays valid for a while',
  description:
    'Until `previousSecretValidUntil`, webhooks have two signatures, separated by a space. While two secrets are valid, `keep` is required.',
  ...shared,
  request: {
    params,
    query,
    body: { content: { 'application/json': { schema: SecretRotation } }, required: false },
  },
  responses: {
    200: describeResponse('The new secret is shown only once', RotatedSecret),
    ...describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found', 'secret_rotating'),
  },
})

/** Serves the changes of a webhook endpoint and of its secret. */
export function endpointChangeRoutes(ctx: WebhooksContext) {
  return createRouter()
    .openapi(update, async (c) => {
      const request = readRequest(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await updateEndpoint(ctx, request, c.req.valid('json'))
      return c.json(showEndpoint(await findEndpoint(ctx, request)), 200)
    })
    .openapi(rotate, async (c) => {
      const request = readRequest(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      return c.json(await rotateSecret(ctx, request, c.req.valid('json')), 200)
    })
}

/** Mounts all routes on webhook endpoints. */
export function mountWebhooks(app: OpenAPIHono<HttpEnv>, ctx: WebhooksContext): void {
  app.route('/', webhookRoutes(ctx))
  app.route('/', endpointChangeRoutes(ctx))
  app.route('/', deliveryRoutes(ctx))
}
