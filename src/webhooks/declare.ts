import { type RouteConfig, z } from '@hono/zod-openapi'
import { Event } from '../feed/view.ts'
import { Time } from '../http/input.ts'

/** What is sent when somebody tries an endpoint out; in no feed. */
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
  'webhook-id': z
    .string()
    .openapi({ description: "The event's `id`: the same each time it is sent" }),
  'webhook-timestamp': z
    .string()
    .openapi({ description: 'When this one was sent, in seconds of Unix time' }),
  'webhook-signature': z.string().openapi({
    description:
      '`v1,` and the Base64 of the HMAC-SHA-256 over id, timestamp and body, joined by dots',
  }),
})

/** For receivers: what is sent to a registered address (Standard Webhooks 1.0), and what their answers mean. */
export const DELIVERY: RouteConfig = {
  method: 'post',
  path: 'event',
  operationId: 'receiveEvent',
  tags: ['Webhooks'],
  summary: 'An event, sent to a registered address',
  description:
    'Check the signature over the very bytes of the body, answer within 15 s, and do what takes longer afterwards. The same event can come more than once.',
  security: [],
  request: {
    headers,
    body: { content: { 'application/json': { schema: Event } }, required: true },
  },
  responses: {
    '2XX': { description: 'Taken; it is not sent again' },
    410: { description: 'Nobody is here any more: the endpoint is disabled' },
    default: {
      description: 'Not taken, as is no answer or a redirect: sent again, later and later',
    },
  },
}

/** What `POST …/test` sends, once. */
export const TEST_DELIVERY: RouteConfig = {
  ...DELIVERY,
  path: 'endpoint.test',
  operationId: 'receiveTestEvent',
  summary: 'A test event, sent when somebody asks for it',
  description: 'Signed as every event is; in no feed, and not sent again.',
  request: {
    headers,
    body: { content: { 'application/json': { schema: TestEvent } }, required: true },
  },
  responses: {
    '2XX': { description: 'Delivered' },
    '4XX': {
      description:
        'Not delivered, as is whatever else: whoever asked is told, and no more comes of it',
    },
  },
}
