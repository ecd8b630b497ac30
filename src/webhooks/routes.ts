import { z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { readPage } from '../access/listing.ts'
import { DomainError } from '../errors.ts'
import { Endpoint } from '../events/webhook-endpoint.ts'
import { createRouter } from '../http/app.ts'
import { isUuid } from '../http/fields.ts'
import { cutPage, DEFAULT_LIMIT, respondPage } from '../http/list.ts'
import type { HttpEnv } from '../http/problems.ts'
import {
  deleteEndpoint,
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
import { listAttempts } from './log.ts'
import * as describe from './openapi.ts'
import {
  createTestLimits,
  replayDelivery,
  replayEvents,
  replayFailed,
  testEndpoint,
} from './replay.ts'
import {
  Delivery,
  EVENT_WEBHOOK,
  showDelivery,
  showEndpoint,
  TEST_EVENT_WEBHOOK,
} from './schemas.ts'
import type { WebhooksContext } from './send.ts'

const NUMBER = /^\d{1,15}$/

/** @throws DomainError `webhook_endpoint_not_found` if the id is not a UUID */
function readRequest(c: HttpContext<HttpEnv>): EndpointRequest {
  const access = c.get('access')
  const owners = listVisibleOwners(access, c.req.query('merchantCode'))
  const endpointId = c.req.param('endpointId') ?? ''
  if (!isUuid(endpointId)) throw endpointNotFound(endpointId)
  // Lower case, as stored: the secret is encrypted with the id as its context.
  return { access, id: endpointId.toLowerCase(), owners }
}

export function webhookRoutes(ctx: WebhooksContext) {
  const limits = createTestLimits()
  const router = createRouter()
  router.openAPIRegistry.registerWebhook(EVENT_WEBHOOK)
  router.openAPIRegistry.registerWebhook(TEST_EVENT_WEBHOOK)
  return router
    .openapi(describe.register, async (c) => {
      const access = c.get('access')
      const { merchantCode: named } = c.req.valid('query')
      const covered = access.coversAll ? [EVERY_MERCHANT] : access.merchants
      const [owner] = named === undefined ? covered : narrowMerchants(access, named)
      if (owner === undefined) {
        const detail = 'This key has no access to this merchant account'
        throw new DomainError('merchant_not_found', detail)
      }
      return c.json(await registerEndpoint(ctx, access, owner, c.req.valid('json')), 201)
    })
    .openapi(describe.list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode: named } = c.req.valid('query')
      const access = c.get('access')
      const owners = listVisibleOwners(access, named)
      const page = await ctx.db.reads.run(access.chainId, ({ sql }) =>
        readPage(sql, cursor, z.uuid(), async (after) => {
          const rows = await listEndpoints(sql, owners, limit, after)
          return cutPage({ rows }, limit, (row) => ({ ...row, time: row.createdAt }), showEndpoint)
        }),
      )
      return respondPage(c, page, Endpoint)
    })
    .openapi(describe.remove, async (c) => {
      await deleteEndpoint(ctx, readRequest(c))
      return c.body(null, 204)
    })
    .openapi(describe.test, async (c) => {
      const { status, error, durationMs } = await testEndpoint(ctx, readRequest(c), limits)
      return c.json({ delivered: error === null, status, durationMs, error }, 200)
    })
    .openapi(describe.enable, async (c) => {
      const request = readRequest(c)
      await enableEndpoint(ctx, request)
      return c.json(await findEndpoint(ctx, request), 200)
    })
    .openapi(describe.replay, async (c) => {
      const request = readRequest(c)
      await replayEvents(ctx, request, Number(c.req.valid('json').after))
      return c.json(await findEndpoint(ctx, request), 202)
    })
    .openapi(describe.update, async (c) => {
      const request = readRequest(c)
      await updateEndpoint(ctx, request, c.req.valid('json'))
      return c.json(await findEndpoint(ctx, request), 200)
    })
    .openapi(describe.rotate, async (c) => {
      return c.json(await rotateSecret(ctx, readRequest(c), c.req.valid('json')), 200)
    })
}

export function deliveryRoutes(ctx: WebhooksContext) {
  return createRouter()
    .openapi(describe.listDeliveries, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, outcome } = c.req.valid('query')
      const request = readRequest(c)
      const page = await ctx.db.reads.run(c.get('access').chainId, ({ sql }) =>
        readPage(sql, cursor, z.string().regex(NUMBER), async (after) => {
          const rows = await listAttempts(sql, request, outcome, limit, after)
          return cutPage(rows, limit, (row) => ({ ...row, time: row.sentAt }), showDelivery)
        }),
      )
      return respondPage(c, page, Delivery)
    })
    .openapi(describe.replayOne, async (c) => {
      const { eventId } = c.req.valid('param')
      const request = readRequest(c)
      if (!NUMBER.test(eventId)) {
        const detail = `There is no event ${eventId}: its id is a whole number`
        throw new DomainError('webhook_delivery_not_found', detail)
      }
      return c.json({ replayed: await replayDelivery(ctx, request, eventId) }, 202)
    })
    .openapi(describe.replayAllFailed, async (c) => {
      return c.json({ replayed: await replayFailed(ctx, readRequest(c)) }, 202)
    })
}
