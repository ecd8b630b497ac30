import { z } from '@hono/zod-openapi'
import { Time } from '../http/fields.ts'

const Removed = z
  .strictObject({ removed: z.literal(true) })
  .openapi({ description: 'Removed after `RETENTION_DAYS`' })

/** Card data and credentials are masked in it. */
const Received = z.unknown().openapi({
  description:
    'What the gateway sent, at most 64 KiB: `members` of an answer, or the `text` of one that cannot be read; `omittedBytes` counts what is left out. Card data, tokens and account numbers are masked. Null for nothing',
})

const ProofSnapshot = z.union([
  z.strictObject({
    queriedAt: Time,
    payments: z
      .unknown()
      .openapi({ description: 'The payments as listed by the gateway, with all their members' }),
    received: Received.openapi({ description: 'The other members of the answer, or null' }),
  }),
  Removed,
])

const ProofAttempt = z.strictObject({
  at: Time.openapi({ description: 'When the attempt was recorded, before it was sent' }),
  bodyHmac: z.string().openapi({
    description: 'HMAC-SHA-256 of the bytes sent under a key of this service, hexadecimal',
  }),
  outcome: z.string().nullable().openapi({
    description:
      'answered, rejected, unavailable (no byte was sent) or unknown; null while in progress',
  }),
  code: z.string().nullable(),
  message: z
    .string()
    .nullable()
    .openapi({ description: "The gateway's message, or why there is no valid answer" }),
  httpStatus: z.int().nullable(),
  durationMs: z.int().nullable(),
  received: Received,
  snapshotBefore: ProofSnapshot.nullable(),
})

const ProofNotification = z.union([
  z.strictObject({
    receivedAt: Time,
    deliveries: z.int(),
    signature: z.string(),
    code: z.string().nullable(),
  }),
  Removed,
])

const ProofTransition = z.strictObject({
  at: Time,
  from: z.string().nullable(),
  to: z.string(),
  cause: z.string(),
  notification: ProofNotification.nullable(),
  snapshot: ProofSnapshot.nullable(),
})

const Indication = z.strictObject({
  kind: z.enum(['answer', 'notification', 'growth', 'decision']).openapi({
    description:
      "An answer to an attempt, a notification, the payment's refunded amount, or a person's decision",
  }),
  supports: z.enum(['succeeded', 'failed', 'neither']),
  at: Time,
  text: z.string(),
})

export type RefundIndication = z.infer<typeof Indication>

/** The evidence for a refund's status, for an accountant or the gateway's support. */
export const Proof = z
  .strictObject({
    requestId: z
      .string()
      .openapi({ description: 'The request id sent to the gateway, the same in every attempt' }),
    requestedBy: z.string().openapi({ description: 'The name of the API key, or of the person' }),
    requestedAt: Time,
    reason: z.string().nullable(),
    attempts: z.array(ProofAttempt),
    transitions: z.array(ProofTransition),
    notifications: z
      .array(z.strictObject({ cause: z.string(), notification: ProofNotification }))
      .openapi({
        description:
          'Notifications of the refund that speak for or against it and changed no status by themselves',
      }),
    indications: z
      .array(Indication)
      .openapi({ description: 'Everything that speaks for its success or against it' }),
    evidence: z.string().openapi({ description: 'The reason for the current status' }),
    discrepancies: z.array(
      z.strictObject({ at: Time, kind: z.string(), ours: z.string(), theirs: z.string() }),
    ),
  })
  .openapi('RefundProof')

export type RefundProof = z.infer<typeof Proof>
