import { createRoute, z } from '@hono/zod-openapi'
import { readPage } from '../access/listing.ts'
import { DomainError } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import { BODY_REFUSALS, describeRefusals, describeResponse } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { cutPage, DEFAULT_LIMIT, describePage, pageParameters, respondPage } from '../http/list.ts'
import { ENDPOINT_PATH } from './changes.ts'
import { listAttempts } from './log.ts'
import { replayDelivery, replayFailed } from './replay.ts'
import { ofEndpoint, params, query, readRequest, shared } from './routes.ts'
import { type AttemptRow, Delivery, DeliveryReplay, showDelivery } from './schemas.ts'
import type { WebhooksContext } from './send.ts'

const NUMBER = /^\d{1,15}$/

const listDeliveries = createRoute({
  method: 'get',
  path: `${ENDPOINT_PATH}/deliveries`,
  operationId: 'listWebhookDeliveries',
  summary: 'List the attempts to deliver events to an endpoint, newest first',
  description: 'Attempts are kept for 30 days, or `RETENTION_DAYS` if that is less.',
  ...shared,
  request: {
    params,
    query: z.strictObject({
      outcome: z.enum(['delivered', 'failed']).optional().openapi({
        description: 'Only attempts that were accepted, or only those that were not',
      }),
      merchantCode: MerchantCode,
      ...pageParameters,
    }),
  },
  responses: {
    200: describePage(Delivery),
    ...describeRefusals('webhook_endpoint_not_found', 'cursor_expired'),
  },
})

const replayOne = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/deliveries/{eventId}/replay`,
  operationId: 'replayWebhookDelivery',
  summary: 'Send one event to an endpoint (again)',
  ...shared,
  request: {
    params: params.extend({
      eventId: z.string().openapi({
        description: 'The `eventId` of a delivery, which is the id of the event in the feed',
        example: '5310',
      }),
    }),
    query,
  },
  responses: {
    202: describeResponse('The event is sent in the background', DeliveryReplay),
    ...describeRefusals(
      ...BODY_REFUSALS,
      'webhook_endpoint_not_found',
      'webhook_delivery_not_found',
      'webhook_endpoint_disabled',
    ),
  },
})

const replayAllFailed = createRoute({
  method: 'post',
  path: `${ENDPOINT_PATH}/deliveries/replay`,
  operationId: 'replayFailedWebhookDeliveries',
  summary: 'Send every event that has failed and was not accepted since, at once',
  ...ofEndpoint,
  responses: {
    202: describeResponse('The events are sent in the background', DeliveryReplay),
    ...describeRefusals(
      ...BODY_REFUSALS,
      'webhook_endpoint_not_found',
      'webhook_endpoint_disabled',
    ),
  },
})

/** Serves the log of deliveries to an endpoint, and repeats them. */
export function deliveryRoutes(ctx: WebhooksContext) {
  return createRouter()
    .openapi(listDeliveries, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, outcome } = c.req.valid('query')
      const request = readRequest(c)
      const page = await ctx.reads.run(c.get('access').chainId, (db) =>
        readPage(db, cursor, z.string().regex(NUMBER), async (after) => {
          const rows = await listAttempts(db, request, { outcome }, limit, after)
          return cutPage(rows, limit, locate, showDelivery)
        }),
      )
      return respondPage(c, page, Delivery)
    })
    .openapi(replayOne, async (c) => {
      const { eventId } = c.req.valid('param')
      const request = readRequest(c)
      if (!NUMBER.test(eventId)) {
        const detail = `There is no event ${eventId}: its id is a whole number`
        throw new DomainError('webhook_delivery_not_found', detail)
      }
      return c.json({ replayed: await replayDelivery(ctx, request, eventId) }, 202)
    })
    .openapi(replayAllFailed, async (c) => {
      const request = readRequest(c)
      return c.json({ replayed: await replayFailed(ctx, request) }, 202)
    })
}

function locate({ sentAt, id, merchantCode }: AttemptRow) {
  return { time: sentAt, id, merchantCode }
}
