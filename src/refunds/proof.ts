import { z } from '@hono/zod-openapi'
import type { Context } from '../context.ts'
import { toIso } from '../db/client.ts'
import { Time } from '../http/input.ts'
import type { RefundRecord } from './find.ts'

const Removed = z
  .strictObject({ removed: z.literal(true) })
  .openapi({ description: 'It was there, and is older than `RETENTION_DAYS`' })

const Snapshot = z.union([
  z.strictObject({
    queriedAt: Time,
    payments: z.unknown().openapi({ description: 'The payments as the gateway listed them' }),
  }),
  Removed,
])

const Attempt = z.strictObject({
  at: Time.openapi({ description: 'Recorded before the first byte left' }),
  bodySha256: z.string().openapi({ description: 'SHA-256 of the bytes sent, hexadecimal' }),
  outcome: z.string().nullable().openapi({
    description:
      'answered, rejected, unavailable (not a byte left), unknown; null while it is under way',
  }),
  code: z.string().nullable(),
  message: z.string().nullable().openapi({ description: 'The answer, or the kind of silence' }),
  httpStatus: z.int().nullable(),
  durationMs: z.int().nullable(),
  snapshotBefore: Snapshot.nullable(),
})

const Transition = z.strictObject({
  at: Time,
  from: z.string().nullable(),
  to: z.string(),
  cause: z.string(),
  notification: z
    .union([
      z.strictObject({
        receivedAt: Time,
        deliveries: z.int(),
        signature: z.string(),
        code: z.string().nullable(),
      }),
      Removed,
    ])
    .nullable(),
  snapshot: Snapshot.nullable(),
})

/** Everything that supports what a refund's status says, for an accountant or the gateway's support. */
export const Proof = z
  .strictObject({
    requestId: z
      .string()
      .openapi({ description: 'The request id on the wire, the same in every attempt' }),
    requestedBy: z.string().openapi({ description: 'The name of the API key' }),
    requestedAt: Time,
    reason: z.string().nullable(),
    attempts: z.array(Attempt),
    transitions: z.array(Transition),
    evidence: z.string().openapi({ description: 'What the present status rests on' }),
    discrepancies: z.array(
      z.strictObject({ at: Time, kind: z.string(), ours: z.string(), theirs: z.string() }),
    ),
  })
  .openapi('RefundProof')

/** Gathers the proof of a refund from what was recorded while it went on. */
export async function gatherProof(
  ctx: Context,
  { refund }: RefundRecord,
): Promise<z.infer<typeof Proof>> {
  const { merchantCode, refundId } = refund
  const attempts = await ctx.sql<AttemptRow[]>`
    select a.recorded_at as at, encode(a.body_sha256, 'hex') as "bodySha256", a.outcome, a.code, a.message,
      a.http_status as "httpStatus", a.duration_ms as "durationMs", c.sent_at as "queriedAt",
      c.answer as payments
    from refund_attempts a left join gateway_calls c
      on c.merchant_code = a.merchant_code and c.id = a.snapshot_call_id
    where a.merchant_code = ${merchantCode} and a.refund_id = ${refundId} order by a.id`
  const transitions = await ctx.sql<TransitionRow[]>`
    select h.call_id is not null as queried, h.ipn_event_id is not null as notified, h.at, h.before as from, h.after as to, h.cause, c.sent_at as "queriedAt", c.answer as payments,
      e.first_received_at as "receivedAt", e.deliveries, e.verdict as signature, e.code
    from changes h
      left join gateway_calls c on c.merchant_code = h.merchant_code and c.id = h.call_id
      left join ipn_events e on e.merchant_code = h.merchant_code and e.id = h.ipn_event_id
    where h.merchant_code = ${merchantCode} and h.transaction_id = ${refund.transactionId}
      and h.refund_id = ${refundId} and h.field = 'status' order by h.id`
  const discrepancies = await ctx.sql<{ at: string; kind: string; ours: string; theirs: string }[]>`
    select at, kind, ours, theirs from discrepancies
    where merchant_code = ${merchantCode} and transaction_id = ${refund.transactionId}
      and (refund_id = ${refundId} or (refund_id is null and payment_id = ${refund.paymentId}))
    order by id`
  return {
    requestId: refundId,
    requestedBy: refund.requestedBy,
    requestedAt: toIso(refund.requestedAt),
    reason: refund.reason,
    attempts: attempts.map(({ queriedAt, payments, at, ...rest }) => ({
      ...rest,
      at: toIso(at),
      snapshotBefore: queriedAt === null ? REMOVED : showSnapshot(queriedAt, payments),
    })),
    transitions: transitions.map(
      ({ at, from, to, cause, queried, notified, queriedAt, payments, ...ipn }) => ({
        at: toIso(at),
        from,
        to,
        cause,
        notification: notified && ipn.receivedAt === null ? REMOVED : showNotification(ipn),
        snapshot: queried && queriedAt === null ? REMOVED : showSnapshot(queriedAt, payments),
      }),
    ),
    evidence: transitions.at(-1)?.cause ?? 'requested',
    discrepancies: discrepancies.map(({ at, ...rest }) => ({ ...rest, at: toIso(at) })),
  }
}

type AttemptRow = {
  at: string
  bodySha256: string
  outcome: string | null
  code: string | null
  message: string | null
  httpStatus: number | null
  durationMs: number | null
  queriedAt: string | null
  payments: unknown
}

type IpnFacts = {
  receivedAt: string | null
  deliveries: number | null
  signature: string | null
  code: string | null
}

/** What a record refers to is not there any more. */
const REMOVED = { removed: true as const }

type TransitionRow = {
  queried: boolean
  notified: boolean
  at: string
  from: string | null
  to: string
  cause: string
  queriedAt: string | null
  payments: unknown
} & IpnFacts

function showSnapshot(queriedAt: string | null, payments: unknown) {
  return queriedAt === null ? null : { queriedAt: toIso(queriedAt), payments }
}

function showNotification({ receivedAt, deliveries, signature, code }: IpnFacts) {
  if (receivedAt === null || deliveries === null || signature === null) return null
  return { receivedAt: toIso(receivedAt), deliveries, signature, code }
}
