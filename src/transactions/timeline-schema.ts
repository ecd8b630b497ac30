import { z } from '@hono/zod-openapi'
import { Amount, Time } from '../http/fields.ts'

const Ipn = z.strictObject({
  at: Time,
  type: z.literal('ipn'),
  kind: z.string(),
  code: z.string().nullable().openapi({
    description: 'The response code it carries; a hint, like everything in a notification',
  }),
  message: z.string().nullable().openapi({ description: "The gateway's words, as notified" }),
  amount: Amount.nullable(),
  paymentId: z.string().nullable(),
  requestId: z.string().nullable().openapi({ description: 'Of the notification of a refund' }),
  deliveries: z.int().openapi({ description: 'How often it was delivered' }),
  lastReceivedAt: Time,
  signature: z.string(),
  recut: z.boolean().openapi({
    description:
      'The hash of the notification was received with other values as well; at most one such reading is trusted',
  }),
  address: z.string(),
})

/** Of an answer at most 64 KiB are stored, card data and tokens masked. */
const Received = z.string().nullable().openapi({
  description:
    'The first 2,000 characters of what was received beside the payments, the code and the message, as JSON: `members` of an answer, or the `text` of one that cannot be read',
})

const Query = z.strictObject({
  at: Time,
  type: z.literal('query'),
  outcome: z.string().openapi({ description: 'answered, rejected, unavailable or unknown' }),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int(),
  bodyHmac: z.string().openapi({
    description: 'HMAC-SHA-256 of the bytes sent under a key of this service, hexadecimal',
  }),
  received: Received,
})

const Change = z.strictObject({
  at: Time,
  type: z.literal('change'),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
  field: z.string(),
  before: z.string().nullable(),
  after: z.string().nullable(),
  cause: z.string(),
})

const RefundAttempt = z.strictObject({
  at: Time,
  type: z.literal('refund_attempt'),
  refundId: z.string(),
  outcome: z.string().nullable(),
  code: z.string().nullable(),
  message: z.string().nullable(),
  httpStatus: z.int().nullable(),
  durationMs: z.int().nullable(),
  bodyHmac: z.string(),
  received: Received.openapi({
    description: 'The first 2,000 characters of what was received, as JSON',
  }),
})

const Discrepancy = z.strictObject({
  at: Time,
  type: z.literal('discrepancy'),
  kind: z.string(),
  paymentId: z.string().nullable(),
  refundId: z.string().nullable(),
  ours: z.string(),
  theirs: z.string(),
})

const Removed = z.strictObject({
  at: Time,
  type: z.literal('removed'),
  deliveries: z.int().openapi({
    description:
      'How many deliveries were among the notifications and queries deleted after `RETENTION_DAYS`',
  }),
})

/** One entry of a transaction's timeline. */
export const TimelineEntry = z
  .discriminatedUnion('type', [Ipn, Query, Change, RefundAttempt, Discrepancy, Removed])
  .openapi('TimelineEntry', {
    example: {
      at: '2026-11-21T09:33:03.213Z',
      type: 'ipn',
      kind: 'payment',
      code: '0',
      message: 'Successful',
      amount: '20000000',
      paymentId: null,
      requestId: null,
      deliveries: 1,
      lastReceivedAt: '2026-11-21T09:33:03.213Z',
      signature: 'verified',
      recut: false,
      address: '127.0.0.1',
    },
  })
