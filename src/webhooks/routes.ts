import { createRoute, z } from '@hono/zod-openapi'
import pLimit from 'p-limit'
import { narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { DomainError } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import {
  BODY_REFUSALS,
  describeEmptyResponse,
  describeRefusals,
  describeResponse,
} from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import {
  cutPage,
  DEFAULT_LIMIT,
  describePage,
  pageParameters,
  readCursor,
  respondPage,
} from '../http/list.ts'
import { createRateLimiter } from '../platform/concurrency/rate-limiter.ts'
import { deleteEndpoint, ENDPOINT_PATH, enableEndpoint, replayEvents } from './change-endpoint.ts'
import type { WebhooksContext } from './context.ts'
import {
  findEndpoint,
  listEndpoints,
  listVisibleOwners,
  params,
  query,
  readRequest,
  refusals,
  shared,
} from './find-endpoints.ts'
import { EVENT_WEBHOOK, TEST_EVENT_WEBHOOK } from './openapi.ts'
import { registerEndpoint } from './register-endpoint.ts'
import { MAX_CONCURRENT_TESTS, testEndpoint } from './test-endpoint.ts'
import {
  Endpoint,
  type EndpointRow,
  NewEndpoint,
  RegisteredEndpoint,
  Replay,
  showEndpoint,
  TestResult,
} from './view.ts'

const register = createRoute({
  method: 'post',
  path: '/v1/webhook-endpoints',
  operationId: 'registerWebhookEndpoint',
  summary: 'Register an address to send events to from now on',
  description:
    'The endpoint belongs to the key, with the keys it is rotated to, and ends with it. It gets what that key may read: payments with `payments:read`, refunds with `refunds:read`. Without `types` it is every type that the key may read now.',
  ...shared,
  request: {
    query,
    body: { content: { 'application/json': { schema: NewEndpoint } }, required: true },
  },
  responses: {
    201: describeResponse('Registered; the secret is shown only once', RegisteredEndpoint),
    ...describeRefusals(...BODY_REFUSALS, 'merchant_not_found', 'too_many_webhook_endpoints'),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/webhook-endpoints',
  operationId: 'listWebhookEndpoints',
  summary: 'List registered endpoints and their condition, newest first',
  ...shared,
  request: { query: z.strictObject({ merchantCode: MerchantCode, ...pageParameters }) },
  responses: { 200: describePage(Endpoint), ...describeRefusals() },
})

const remove = createRoute({
  method: 'delete',
  path: ENDPOINT_PATH,
  operationId: 'deleteWebhookEndpoint',
  summary: 'Delete an endpoint, its secret and its pending deliveries',
  ...shared,
  request: { params, query },
  responses: { 204: describeEmptyResponse('Deleted'), ...refusals },
})

const test = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/test`,
  operationId: 'testWebhookEndpoint',
  summary: 'Send a signed test event now',
  description:
    'At most 20 a minute and account. A receiver that sends no HTTP answer within 5 s is reported after 5 s, whatever the reason.',
  ...shared,
  request: { params, query },
  responses: { 200: describeResponse('The result of the test', TestResult), ...refusals },
})

const enable = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/enable`,
  operationId: 'enableWebhookEndpoint',
  summary: 'Enable an endpoint: deliveries continue at once where they stopped',
  description:
    'The key has to be able to read what the endpoint gets. If the key or the person that it belonged to has no access any more, it belongs to this key from now on.',
  ...shared,
  request: { params, query },
  responses: { 200: describeResponse('The endpoint after the change', Endpoint), ...refusals },
})

const replay = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/replay`,
  operationId: 'replayEvents',
  summary: 'Send every event after a given one (again), in order',
  ...shared,
  request: {
    params,
    query,
    body: { content: { 'application/json': { schema: Replay } }, required: true },
  },
  responses: {
    202: describeResponse('The endpoint; its events are sent in the background', Endpoint),
    ...describeRefusals(...BODY_REFUSALS, 'webhook_endpoint_not_found', 'cursor_expired'),
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
      const after = readCursor(cursor, z.uuid())
      const access = c.get('access')
      const owners = listVisibleOwners(access, named)
      const rows = await ctx.reads.run(access.chainId, (db) =>
        listEndpoints(db, owners, limit, after),
      )
      return respondPage(c, cutPage({ rows }, limit, readPosition, showEndpoint), Endpoint)
    })
    .openapi(remove, async (c) => {
      const request = readRequest(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await deleteEndpoint(ctx, request)
      return c.body(null, 204)
    })
    .openapi(test, async (c) => {
      const request = readRequest(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      const { status, error, durationMs } = await testEndpoint(ctx, request, limits)
      return c.json({ delivered: error === null, status, durationMs, error }, 200)
    })
    .openapi(enable, async (c) => {
      const request = readRequest(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await enableEndpoint(ctx, request)
      return c.json(showEndpoint(await findEndpoint(ctx, request)), 200)
    })
    .openapi(replay, async (c) => {
      const request = readRequest(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await replayEvents(ctx, request, Number(c.req.valid('json').after))
      return c.json(showEndpoint(await findEndpoint(ctx, request)), 202)
    })
}

function readPosition({ createdAt, id, merchantCode }: EndpointRow) {
  return { time: createdAt, id, merchantCode }
}
