import { z } from '@hono/zod-openapi'
import { EVENT_TYPES, isEventType } from '../events/event.ts'
import { Id, Time } from '../http/fields.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { describeFailure } from './sender.ts'

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

export const EndpointChange = z
  .strictObject({ url: Url.optional(), types: NewEndpoint.shape.types })
  .refine(({ url, types }) => url !== undefined || types !== undefined, 'must name url or types')
  .openapi('WebhookEndpointChange', { example: { url: 'https://shop.example/hooks/v2' } })

/** Long enough for a roll-out over a weekend (s). */
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

const PreviousSecretValidUntil = Time.nullable().openapi({
  description:
    'Until then every webhook is also signed with the secret before the last rotation; null when only one is valid',
})

/** The response to a rotation: the only one that contains the new secret. */
export const RotatedSecret = z
  .strictObject({
    id: z.uuid(),
    secret: z.string().openapi({ example: 'whsec_…', description: 'Shown only once' }),
    previousSecretValidUntil: PreviousSecretValidUntil,
  })
  .openapi('RotatedWebhookSecret')

/** The only response to a registration that contains the secret. */
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
    owner: z.string().nullable().openapi({
      description:
        'The name of the API key or the person that it belongs to: it gets what that may read, and ends with it. Null when it is not known: enable it to own it',
    }),
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
    previousSecretValidUntil: PreviousSecretValidUntil,
    disabledAt: Time.nullable(),
    disabledReason: z.enum(['gone', 'failing', 'key_ended']).nullable().openapi({
      description:
        'gone: it answered 410; failing: no delivery succeeded for five days; key_ended: its owner has no access any more',
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

/** An attempt to deliver an event. */
export const Delivery = z
  .strictObject({
    id: z.string().openapi({ description: 'Of the attempt', example: '1204' }),
    eventId: z.string().openapi({ description: 'Also the `webhook-id`', example: '5310' }),
    type: z.string().openapi({ example: 'payment.updated' }),
    transactionId: Id,
    attempt: z.int().openapi({
      description: 'Counts the attempts since the event was fanned out or replayed, from 1',
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

/** An attempt of the log, and when the event is due again, if it is. */
export type AttemptRow = {
  id: string
  merchantCode: string
  eventId: string
  type: string
  transactionId: string
  attempt: number
  sentAt: string
  durationMs: number
  status: number | null
  error: string | null
  answer: string | null
  nextAttemptAt: string | null
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

export type EndpointRow = {
  id: string
  merchantCode: string
  owner: string | null
  url: string
  types: string[]
  withRefunds: boolean
  createdAt: string
  failingSince: string | null
  previousSecretValidUntil: string | null
  disabledAt: string | null
  disabledReason: 'gone' | 'failing' | 'key_ended' | null
  lastError: string | null
  pending: number
}

export function showEndpoint(row: EndpointRow): z.infer<typeof Endpoint> {
  return {
    id: row.id,
    merchantCode: row.merchantCode,
    owner: row.owner,
    url: row.url,
    types: row.types,
    createdAt: toIso(row.createdAt),
    failingSince: toIso(row.failingSince),
    lastError: describeFailure(row.lastError),
    previousSecretValidUntil: toIso(row.previousSecretValidUntil),
    disabledAt: toIso(row.disabledAt),
    disabledReason: row.disabledReason,
    pending: row.pending,
  }
}
