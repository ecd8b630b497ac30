import { z } from '@hono/zod-openapi'
import { EVENT_TYPES, isEventType } from '../events/event.ts'
import { Time } from '../platform/http/fields.ts'
import { toIso } from '../platform/postgres/iso-time.ts'

const EventTypeName = z.enum(EVENT_TYPES.filter(isEventType))

const Url = z.string().openapi({ example: 'https://shop.example/hooks/payments' })

export const NewEndpoint = z
  .strictObject({
    url: Url,
    types: z.array(EventTypeName).min(1, 'must name a type, or be left out').optional(),
  })
  .openapi('NewWebhookEndpoint', {
    example: { url: 'https://shop.example/hooks/payments', types: ['transaction.final'] },
  })

/** The only response that contains the secret. */
export const RegisteredEndpoint = z
  .strictObject({
    id: z.uuid(),
    url: Url,
    types: z.array(z.string()),
    secret: z.string().openapi({ example: 'whsec_…', description: 'Shown only once' }),
  })
  .openapi('RegisteredWebhookEndpoint')

/** A webhook endpoint and its condition. */
export const Endpoint = z
  .strictObject({
    id: z.uuid(),
    merchantCode: z.string().openapi({ description: '`*`: events of every account' }),
    url: Url,
    types: z.array(z.string()),
    createdAt: Time,
    failingSince: Time.nullable().openapi({
      description: 'The first failure since the last success',
    }),
    lastError: z
      .string()
      .nullable()
      .openapi({ description: 'The last error of a pending delivery' }),
    disabledAt: Time.nullable(),
    disabledReason: z.enum(['gone', 'failing']).nullable().openapi({
      description: 'gone: it answered 410; failing: no delivery succeeded for five days',
    }),
    pending: z.int().openapi({
      description: 'Events not delivered yet, about 10,000 at most: further ones wait in the feed',
    }),
  })
  .openapi('WebhookEndpoint')

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

export const Replay = z.strictObject({
  after: z
    .string('must be the id of an event, or 0')
    .regex(/^\d{1,15}$/, 'must be the id of an event, or 0'),
})

export type EndpointRow = {
  id: string
  merchantCode: string
  url: string
  types: string[]
  createdAt: string
  failingSince: string | null
  disabledAt: string | null
  disabledReason: 'gone' | 'failing' | null
  lastError: string | null
  pending: number
}

export function showEndpoint(row: EndpointRow): z.infer<typeof Endpoint> {
  return {
    id: row.id,
    merchantCode: row.merchantCode,
    url: row.url,
    types: row.types,
    createdAt: toIso(row.createdAt),
    failingSince: toIso(row.failingSince),
    lastError: row.lastError,
    disabledAt: toIso(row.disabledAt),
    disabledReason: row.disabledReason,
    pending: row.pending,
  }
}
