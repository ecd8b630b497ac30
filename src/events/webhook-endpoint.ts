import { z } from '@hono/zod-openapi'
import { Time } from '../http/fields.ts'

export const EndpointUrl = z.string().openapi({ example: 'https://shop.example/hooks/payments' })

export const PreviousSecretValidUntil = Time.nullable().openapi({
  description:
    'Until then every webhook is also signed with the secret before the last rotation; null when only one is valid',
})

export const Endpoint = z
  .strictObject({
    id: z.uuid(),
    merchantCode: z.string().openapi({ description: '`*`: events of every account' }),
    owner: z.string().nullable().openapi({
      description:
        'The name of the API key or the person that it belongs to: it gets what that may read, and ends with it. Null when it is not known: enable it to own it',
    }),
    url: EndpointUrl,
    types: z.array(z.string()),
    apiVersion: z.string().openapi({
      description: 'The version of events that it was registered with, and gets',
      example: '2026-11',
    }),
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
      description:
        'Events not delivered yet: those that failed or wait behind one that did, and up to 10,000 of the feed',
    }),
  })
  .openapi('WebhookEndpoint')
