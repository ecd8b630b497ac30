import { type RouteConfig, z } from '@hono/zod-openapi'
import { EVENT_TYPES } from '../events/event.ts'
import { type Endpoint, EndpointUrl, PreviousSecretValidUntil } from '../events/webhook-endpoint.ts'
import { Event } from '../feed/view.ts'
import { Id, Time } from '../http/fields.ts'
import { toIso, withIso } from '../platform/postgres/row-set.ts'
import { describeFailure } from './send.ts'

const EventTypeName = z.enum(EVENT_TYPES)

export const NewEndpoint = z
  .strictObject({
    url: EndpointUrl,
    types: z.array(EventTypeName).min(1, 'must name a type, or be left out').optional(),
  })
  .openapi('NewWebhookEndpoint', {
    example: { url: 'https://shop.example/hooks/payments', types: ['transaction.final'] },
  })

export const EndpointChange = z
  .strictObject({ url: EndpointUrl.optional(), types: NewEndpoint.shape.types })
  .refine(({ url, types }) => url !== undefined || types !== undefined, 'must name url or types')
  .openapi('WebhookEndpointChange', { example: { url: 'https://shop.example/hooks/v2' } })

const MAX_ROTATION_S = 604_800

export const SecretRotation = z
  .strictObject({
    previousValidForS: z
      .int('must be whole seconds')
      .min(0, 'must be at least 0')
      .max(MAX_ROTATION_S, `must be at most ${MAX_ROTATION_S}`)
      .default(86_400)
      .openapi({
        description: 'How long the secret before stays valid (s); 0 ends it at once',
      }),
    keep: z.enum(['current', 'previous']).optional().openapi({
      description: 'Only while two secrets are valid: which of them stays valid beside the new one',
    }),
  })
  .openapi('WebhookSecretRotation', { example: { previousValidForS: 86_400 } })

const NewSecret = z.string().openapi({ example: 'whsec_…', description: 'Shown only once' })

export const RotatedSecret = z
  .strictObject({
    id: z.uuid(),
    secret: NewSecret,
    previousSecretValidUntil: PreviousSecretValidUntil,
  })
  .openapi('RotatedWebhookSecret')

export const RegisteredEndpoint = z
  .strictObject({
    id: z.uuid(),
    url: EndpointUrl,
    types: z.array(z.string()),
    secret: NewSecret,
  })
  .openapi('RegisteredWebhookEndpoint')

export const TestResult = z
  .strictObject({
    delivered: z.boolean(),
    status: z
      .int()
      .nullable()
      .openapi({ description: 'HTTP status of the response; null without one' }),
    durationMs: z.int(),
    error: z.string().nullable(),
  })
  .openapi('WebhookTest')

const NOT_AN_EVENT = 'must be a text: the id of an event, or "0"'

export const Replay = z.strictObject({
  after: z
    .string(NOT_AN_EVENT)
    .regex(/^\d{1,15}$/, NOT_AN_EVENT)
    .openapi({ description: 'The id of an event; 0 begins with the oldest event that is kept' }),
})

export const Delivery = z
  .strictObject({
    id: z.string().openapi({ description: 'Of the attempt', example: '1204' }),
    eventId: z.string().openapi({ description: 'Also the `webhook-id`', example: '5310' }),
    type: z.string().openapi({ example: 'payment.updated' }),
    transactionId: Id,
    attempt: z.int().openapi({
      description: 'Counts the attempts since the event was first sent or replayed, from 1',
    }),
    outcome: z.enum(['delivered', 'failed']),
    sentAt: Time,
    durationMs: z.int().nullable().openapi({ description: 'Null without a response' }),
    status: z.int().nullable().openapi({ description: 'HTTP status; null without a response' }),
    error: z.string().nullable(),
    answer: z.string().nullable().openapi({
      description: 'The first KiB of the response as text, masked; null without a response',
    }),
    nextAttemptAt: Time.nullable().openapi({
      description: 'When the event is sent again; null when it was delivered',
    }),
  })
  .openapi('WebhookDelivery')

export const DeliveryReplay = z
  .strictObject({ replayed: z.int().openapi({ description: 'How many events are sent again' }) })
  .openapi('WebhookDeliveryReplay')

export type AttemptRow = Omit<z.infer<typeof Delivery>, 'outcome' | 'durationMs'> & {
  merchantCode: string
  durationMs: number
}

export function showDelivery(row: AttemptRow): z.infer<typeof Delivery> {
  const { merchantCode: _, sentAt, nextAttemptAt, error, durationMs, ...rest } = row
  return {
    ...rest,
    error: describeFailure(error),
    durationMs: rest.status === null ? null : durationMs,
    outcome: error === null ? 'delivered' : 'failed',
    sentAt: toIso(sentAt),
    nextAttemptAt: toIso(nextAttemptAt),
  }
}

/** An endpoint with times as the database writes them. */
export type EndpointRow = z.infer<typeof Endpoint>

const TIMES = ['createdAt', 'failingSince', 'previousSecretValidUntil', 'disabledAt'] as const

export function showEndpoint(row: EndpointRow): EndpointRow {
  return withIso({ ...row, lastError: describeFailure(row.lastError) }, TIMES)
}

/** The event that `POST …/test` sends. It is not in the feed. */
export const TestEvent = z
  .strictObject({
    id: z.string(),
    type: z.literal('endpoint.test'),
    apiVersion: z.string(),
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

/** Describes a delivery (Standard Webhooks 1.0) and what the responses of an endpoint mean. */
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
