import { createRoute, z } from '@hono/zod-openapi'
import pLimit from 'p-limit'
import { type Access, narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import { answers, answersNothing, createRouter, isOwnId, MerchantCode } from '../http/input.ts'
import { cutPage, DEFAULT_LIMIT, pageOf, pageParameters, readCursor } from '../http/page.ts'
import { BODY_REFUSALS, refuses } from '../http/refusals.ts'
import { deleteEndpoint, enableEndpoint, replayEvents } from './change.ts'
import { DELIVERY, TEST_DELIVERY } from './declare.ts'
import { type Asked, endpointNotFound, findEndpoint, listEndpoints, narrowHolders } from './find.ts'
import { registerEndpoint } from './register.ts'
import { TESTS_AT_ONCE, testEndpoint } from './test-endpoint.ts'
import {
  Endpoint,
  type EndpointRow,
  NewEndpoint,
  RegisteredEndpoint,
  Replay,
  showEndpoint,
  TestResult,
} from './view.ts'

const ONE = '/v1/webhook-endpoints/{endpointId}'
const shared = { tags: ['Webhooks'], ...withScope('webhooks:write') }
const merchantCode = MerchantCode
const params = z.object({
  endpointId: z.string().openapi({
    description: 'The `id` of the endpoint; a text of another form is not found',
    example: '5f0c2f0e-2b0d-4f7a-9d2e-0f6f0a8f3c55',
  }),
})
const query = z.strictObject({ merchantCode })
const refusals = refuses(...BODY_REFUSALS, 'webhook_endpoint_not_found')

const register = createRoute({
  method: 'post',
  path: '/v1/webhook-endpoints',
  operationId: 'registerWebhookEndpoint',
  summary: 'Register an address that events are sent to from now on',
  description:
    'Events of refunds are for keys that have the scope `refunds:read`, too; all others need no more.',
  ...shared,
  request: {
    query,
    body: { content: { 'application/json': { schema: NewEndpoint } }, required: true },
  },
  responses: {
    201: answers('Registered; the secret is shown this once', RegisteredEndpoint),
    ...refuses(...BODY_REFUSALS, 'merchant_not_found', 'too_many_webhook_endpoints'),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/webhook-endpoints',
  operationId: 'listWebhookEndpoints',
  summary: 'Registered addresses and how they do, newest first',
  ...shared,
  request: { query: z.strictObject({ merchantCode, ...pageParameters }) },
  responses: { 200: answers('A page', pageOf(Endpoint)), ...refuses() },
})

const remove = createRoute({
  method: 'delete',
  path: ONE,
  operationId: 'deleteWebhookEndpoint',
  summary: 'Send nothing more there, and forget the secret',
  ...shared,
  request: { params, query },
  responses: { 204: answersNothing('Gone'), ...refusals },
})

const test = createRoute({
  method: 'post',
  path: `${ONE}/test`,
  operationId: 'testWebhookEndpoint',
  summary: 'Send a signed test event there now',
  ...shared,
  request: { params, query },
  responses: { 200: answers('What came of it', TestResult), ...refusals },
})

const enable = createRoute({
  method: 'post',
  path: `${ONE}/enable`,
  operationId: 'enableWebhookEndpoint',
  summary: 'Go on where it stopped, at once',
  ...shared,
  request: { params, query },
  responses: { 200: answers('The endpoint as it is now', Endpoint), ...refusals },
})

const replay = createRoute({
  method: 'post',
  path: `${ONE}/replay`,
  operationId: 'replayEvents',
  summary: 'Send everything after an event (again), in order',
  ...shared,
  request: {
    params,
    query,
    body: { content: { 'application/json': { schema: Replay } }, required: true },
  },
  responses: {
    202: answers('The endpoint; its events follow', Endpoint),
    ...refuses(...BODY_REFUSALS, 'webhook_endpoint_not_found', 'cursor_expired'),
  },
})

/** The merchants' routes on the addresses that events are sent to. */
export function webhookRoutes(ctx: Context) {
  const tests = pLimit(TESTS_AT_ONCE)
  const router = createRouter()
  router.openAPIRegistry.registerWebhook(DELIVERY)
  router.openAPIRegistry.registerWebhook(TEST_DELIVERY)
  return router
    .openapi(register, async (c) => {
      const access = c.get('access')
      const { merchantCode: named } = c.req.valid('query')
      const [only] = named === undefined ? [access.merchantCode] : narrowMerchants(access, named)
      if (only === undefined) {
        throw new DomainError('merchant_not_found', 'This key holds no such merchant account')
      }
      return c.json(await registerEndpoint(ctx, access, only, c.req.valid('json')), 201)
    })
    .openapi(list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode: named } = c.req.valid('query')
      const after = readCursor(cursor, z.uuid())
      const rows = await listEndpoints(ctx, narrowHolders(c.get('access'), named), limit, after)
      return c.json(cutPage(rows, limit, locate, showEndpoint), 200)
    })
    .openapi(remove, async (c) => {
      const asked = read(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await deleteEndpoint(ctx, asked)
      return c.body(null, 204)
    })
    .openapi(test, async (c) => {
      const asked = read(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      const { status, error, durationMs } = await testEndpoint(ctx, asked, tests)
      return c.json({ delivered: error === null, status, durationMs, error }, 200)
    })
    .openapi(enable, async (c) => {
      const asked = read(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await enableEndpoint(ctx, asked)
      return c.json(showEndpoint(await findEndpoint(ctx, asked)), 200)
    })
    .openapi(replay, async (c) => {
      const asked = read(c.get('access'), c.req.valid('param'), c.req.valid('query'))
      await replayEvents(ctx, asked, Number(c.req.valid('json').after))
      return c.json(showEndpoint(await findEndpoint(ctx, asked)), 202)
    })
}

/** @throws DomainError `webhook_endpoint_not_found` for a text that can be no id */
function read(
  access: Access,
  { endpointId }: z.infer<typeof params>,
  { merchantCode: named }: z.infer<typeof query>,
): Asked {
  const holders = narrowHolders(access, named)
  if (!isOwnId(endpointId)) throw endpointNotFound(endpointId)
  // As it is stored: its secret is sealed for the id.
  return { access, id: endpointId.toLowerCase(), holders }
}

function locate({ createdAt, id, merchantCode }: EndpointRow) {
  return { time: createdAt, id, merchantCode }
}
