import { type RouteConfig, z } from '@hono/zod-openapi'
import { Event } from '../feed/view.ts'
import { Time } from '../http/fields.ts'

/** The event that `POST …/test` sends. It is not in the feed. */
export const TestEvent = z
  .strictObject({
    id: z.string(),
    type: z.literal('endpoint.test'),
    timestamp: Time,
    transactionId: z.literal('test'),
    data: z.strictObject({ endpointId: z.uuid() }),
  })
  .openapi('TestEvent')

const headers = z.object({
  'webhook-id': z.string().openapi({ description: "The event's `id`: the same on every attempt" }),
  'webhook-timestamp': z
    .string()
    .openapi({ description: 'When this attempt was sent, in Unix seconds' }),
  'webhook-signature': z.string().openapi({
    description:
      '`v1,` and the Base64 of the HMAC-SHA-256 over id, timestamp and body, joined by dots',
  }),
})

/** A delivery to a registered endpoint (Standard Webhooks 1.0), and what the endpoint's responses mean. */
export const EVENT_WEBHOOK: RouteConfig = {
  method: 'post',
  path: 'event',
  operationId: 'receiveEvent',
  tags: ['Webhooks'],
  summary: 'An event, sent to a registered endpoint',
  description:
    'Verify the signature over the exact bytes of the body, answer within 15 s, and do longer work afterwards. The same event can arrive more than once.',
  security: [],
  request: {
    headers,
    body: { content: { 'application/json': { schema: Event } }, required: true },
  },
  responses: {
    '2XX': { description: 'Accepted; the event is not sent again' },
    410: { description: 'Gone: the endpoint is disabled' },
    default: {
      description: 'Not accepted, like a redirect or no response: sent again, with growing delays',
    },
  },
}

/** The delivery of a test event, attempted once. */
export const TEST_EVENT_WEBHOOK: RouteConfig = {
  ...EVENT_WEBHOOK,
  path: 'endpoint.test',
  operationId: 'receiveTestEvent',
  summary: 'A test event, sent on request',
  description: 'Signed like every event. Not in the feed, and not sent again.',
  request: {
    headers,
    body: { content: { 'application/json': { schema: TestEvent } }, required: true },
  },
  responses: {
    '2XX': { description: 'Delivered' },
    '4XX': {
      description:
        'Not delivered, like any other response: the answer to the test request reports it; nothing else follows',
    },
  },
}
