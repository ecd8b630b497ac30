import { createRoute } from '@hono/zod-openapi'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { ENDPOINT_PATH } from './commit-change.ts'
import type { WebhooksContext } from './context.ts'
import { params, query, readRequest, refusals, shared } from './endpoint-params.ts'
import { findEndpoint } from './find-endpoints.ts'
import { rotateSecret } from './rotate-secret.ts'
import { updateEndpoint } from './update-endpoint.ts'
import { Endpoint, EndpointChange, RotatedSecret, SecretRotation, showEndpoint } from './view.ts'

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
