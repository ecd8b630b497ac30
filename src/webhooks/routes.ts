import { createRoute, z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import pLimit from 'p-limit'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { readPage } from '../access/listing.ts'
import { DomainError } from '../errors.ts'
import { Endpoint } from '../events/webhook-endpoint.ts'
import { createRouter } from '../http/app.ts'
import {
  BODY_REFUSALS,
  describeEmptyResponse,
  describeRefusals,
  describeResponse,
} from '../http/describe.ts'
import { isUuid, MerchantCode } from '../http/fields.ts'
import { cutPage, DEFAULT_LIMIT, describePage, pageParameters, respondPage } from '../http/list.ts'
import type { HttpEnv } from '../http/problems.ts'
import { createRateLimiter } from '../platform/concurrency/rate-limiter.ts'
import {
  deleteEndpoint,
  ENDPOINT_PATH,
  ENDPOINTS_PATH,
  enableEndpoint,
  registerEndpoint,
  rotateSecret,
  updateEndpoint,
} from './changes.ts'
import {
  type EndpointRequest,
  endpointNotFound,
  findEndpoint,
  listEndpoints,
  listVisibleOwners,
} from './endpoints.ts'
import { MAX_CONCURRENT_TESTS, replayEvents, testEndpoint } from './replay.ts'
import {
  EndpointChange,
  type EndpointRow,
  EVENT_WEBHOOK,
  NewEndpoint,
  RegisteredEndpoint,
  Replay,
  RotatedSecret,
  SecretRotation,
  showEndpoint,
  TEST_EVENT_WEBHOOK,
  TestResult,
} from './schemas.ts'
import type { WebhooksContext } from './send.ts'

export const shared = { tags: ['Webhooks'], ...withScope('webhooks:write') }

/** The endpoint in a path. */
export const params = z.object({
  endpointId: z.string().openapi({
    description: 'The `id` of the endpoint; anything but a UUID is answered 404',
    example: '5f0c2f0e-2b0d-4f7a-9d2e-0f6f0a8f3c55',
  }),
})
export const query = z.strictObject({ merchantCode: MerchantCode })
/** The body of a request as JSON. */
function takes<T extends z.ZodType>(schema: T, required = true) {
  return { body: { content: { 'application/json': { schema } }, required } }
}
export const ofEndpoint = { ...shared, request: { params, query } }
const refusals = describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found')

/** @throws DomainError `webhook_endpoint_not_found` for an id that is no UUID */
export function readRequest(c: HttpContext<HttpEnv>): EndpointRequest {
  const access = c.get('access')
  const owners = listVisibleOwners(access, c.req.query('merchantCode'))
  const endpointId = c.req.param('endpointId') ?? ''
  if (!isUuid(endpointId)) throw endpointNotFound(endpointId)
  // Lower case, as stored: the secret is encrypted with the id as its context.
  return { access, id: endpointId.toLowerCase(), owners }
}

const register = createRoute({
  method: 'post',
  path: ENDPOINTS_PATH,
  operationId: 'registerWebhookEndpoint',
  summary: 'Register an address to send events to from now on',
  description:
    'The endpoint belongs to the key, with the keys it is rotated to, and ends with it. It gets what that key may read: payments with `payments:read`, refunds with `refunds:read`. Without `types` it is every type that the key may read now.',
  ...shared,
  request: { query, ...takes(NewEndpoint) },
  responses: {
    201: describeResponse('Registered; the secret is shown only once', RegisteredEndpoint),
    ...describeRefusals(...BODY_REFUSALS, 'merchant_not_found', 'too_many_webhook_endpoints'),
  },
})

const list = createRoute({
  method: 'get',
  path: ENDPOINTS_PATH,
  operationId: 'listWebhookEndpoints',
  summary: 'List registered endpoints and their condition, newest first',
  ...shared,
  request: { query: z.strictObject({ merchantCode: MerchantCode, ...pageParameters }) },
  responses: { 200: describePage(Endpoint), ...describeRefusals('cursor_expired') },
})

const remove = createRoute({
  method: 'delete',
  path: ENDPOINT_PATH,
  operationId: 'deleteWebhookEndpoint',
  summary: 'Delete an endpoint, its secret and its pending deliveries',
  ...ofEndpoint,
  responses: { 204: describeEmptyResponse('Deleted'), ...refusals },
})

const test = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/test`,
  operationId: 'testWebhookEndpoint',
  summary: 'Send a signed test event now',
  description:
    'At most 20 a minute and account. A receiver that sends no HTTP answer within 5 s is reported after 5 s, whatever the reason.',
  ...ofEndpoint,
  responses: { 200: describeResponse('The result of the test', TestResult), ...refusals },
})

const enable = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/enable`,
  operationId: 'enableWebhookEndpoint',
  summary: 'Enable an endpoint: deliveries continue at once where they stopped',
  description:
    'The key has to be able to read what the endpoint gets. If the key or the person that it belonged to has no access any more, it belongs to this key from now on.',
  ...ofEndpoint,
  responses: { 200: describeResponse('The endpoint after the change', Endpoint), ...refusals },
})

const replay = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/replay`,
  operationId: 'replayEvents',
  summary: 'Send every event after a given one (again), in order',
  ...shared,
  request: { params, query, ...takes(Replay) },
  responses: {
    202: describeResponse('The endpoint; its events are sent in the background', Endpoint),
    ...describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found', 'cursor_expired'),
  },
})

const update = createRoute({
  method: 'patch',
  path: ENDPOINT_PATH,
  operationId: 'updateWebhookEndpoint',
  summary: 'Change the address or the types of an endpoint',
  description:
    'Other types apply to every event that was not sent yet; what waits is sent to the new address. The key has to be able to read all types that the endpoint gets.',
  ...shared,
  request: { params, query, ...takes(EndpointChange) },
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
  request: { params, query, ...takes(SecretRotation, false) },
  responses: {
    200: describeResponse('The new secret is shown only once', RotatedSecret),
    ...describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found', 'secret_rotating'),
  },
})

/** Serves the merchants' routes on webhook endpoints. */
export function webhookRoutes(ctx: WebhooksContext) {
  const limits = { tests: pLimit(MAX_CONCURRENT_TESTS), rates: createRateLimiter() }
  const router = createRouter()
  router.openAPIRegistry.registerWebhook(EVENT_WEBHOOK)
  router.openAPIRegistry.registerWebhook(TEST_EVENT_WEBHOOK)
  return router
    .openapi(register, async (c) => {
      const access = c.get('access')
      const { merchantCode: named } = c.req.valid('query')
      const covered = access.coversAll ? [EVERY_MERCHANT] : access.merchants
      const [owner] = named === undefined ? covered : narrowMerchants(access, named)
      if (owner === undefined) {
        throw new DomainError(
          'merchant_not_found',
          'This key has no access to this merchant account',
        )
      }
      return c.json(await registerEndpoint(ctx, access, owner, c.req.valid('json')), 201)
    })
    .openapi(list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode: named } = c.req.valid('query')
      const access = c.get('access')
      const owners = listVisibleOwners(access, named)
      const page = await ctx.reads.run(access.chainId, (db) =>
        readPage(db, cursor, z.uuid(), async (after) => {
          const rows = await listEndpoints(db, owners, limit, after)
          return cutPage({ rows }, limit, readPosition, showEndpoint)
        }),
      )
      return respondPage(c, page, Endpoint)
    })
    .openapi(remove, async (c) => {
      const request = readRequest(c)
      await deleteEndpoint(ctx, request)
      return c.body(null, 204)
    })
    .openapi(test, async (c) => {
      const request = readRequest(c)
      const { status, error, durationMs } = await testEndpoint(ctx, request, limits)
      return c.json({ delivered: error === null, status, durationMs, error }, 200)
    })
    .openapi(enable, async (c) => {
      const request = readRequest(c)
      await enableEndpoint(ctx, request)
      return c.json(showEndpoint(await findEndpoint(ctx, request)), 200)
    })
    .openapi(replay, async (c) => {
      const request = readRequest(c)
      await replayEvents(ctx, request, Number(c.req.valid('json').after))
      return c.json(showEndpoint(await findEndpoint(ctx, request)), 202)
    })
    .openapi(update, async (c) => {
      const request = readRequest(c)
      await updateEndpoint(ctx, request, c.req.valid('json'))
      return c.json(showEndpoint(await findEndpoint(ctx, request)), 200)
    })
    .openapi(rotate, async (c) => {
      const request = readRequest(c)
      return c.json(await rotateSecret(ctx, request, c.req.valid('json')), 200)
    })
}

function readPosition({ createdAt, id, merchantCode }: EndpointRow) {
  return { time: createdAt, id, merchantCode }
}
