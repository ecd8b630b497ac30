import { z } from '@hono/zod-openapi'
import { Big } from 'big.js'
import type { Context } from '../context.ts'
import { Time } from '../http/fields.ts'
import { byExpressions } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { DECIDED_CAUSE } from './external-view.ts'
import type { RefundRecord } from './find.ts'
import type { RefundRow } from './lifecycle.ts'
import { readResult } from './notifications.ts'

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

type StoredRefund = RefundRecord['refund']

type Attempt = { at: string; outcome: string | null; code: string | null; message: string | null }
type Transition = { at: string; to: string; cause: string }

/**
 * Lists everything that speaks for the success of a refund or against it: the gateway's answers, its
 * notifications, the refunded amount, and what people decided before.
 */
export async function readIndications(
  { sql }: Pick<Context, 'sql'>,
  refund: StoredRefund,
  attempts: readonly Attempt[],
  transitions: readonly Transition[],
): Promise<RefundIndication[]> {
  const notifications = await readNotifications(sql, refund)
  const growth = await readGrowth(sql, refund)
  return [
    ...attempts.map(describeAnswer),
    ...notifications.map((one) => describeNotification(one, refund)),
    ...(growth ? [describeGrowth(growth, refund)] : []),
    ...transitions.filter(({ cause }) => DECIDED_CAUSE.test(cause)).map(describeDecision),
  ]
}

function describeAnswer({ at, outcome, code, message }: Attempt): RefundIndication {
  const explanation = message ? `: ${message}` : ''
  const answer = { kind: 'answer' as const, at: toIso(at) }
  if (outcome === 'answered')
    return { ...answer, supports: 'succeeded', text: `code ${code}${explanation}` }
  if (outcome === 'rejected')
    return { ...answer, supports: 'failed', text: `code ${code}${explanation}` }
  return { ...answer, supports: 'neither', text: `no answer${explanation}` }
}

type Notification = {
  receivedAt: string
  code: string | null
  verified: boolean
  trusted: boolean
  paymentId: string | null
  requestId: string
  amount: string | null
}

const BY_REQUEST = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.request_id'],
)

async function readNotifications(
  sql: Context['sql'],
  { merchantCode, refundId }: StoredRefund,
): Promise<Notification[]> {
  return await sql<Notification[]>`
    select e.first_received_at as "receivedAt", e.code, e.verdict = 'verified' as verified,
      e.reading = 1 as trusted, e.payment_id as "paymentId", e.request_id as "requestId", e.amount
    from (select ${merchantCode}::text as merchant_code, ${refundId}::text as request_id) as k
    cross join lateral (
      select * from ipn_events as e where e.kind = 'refund' and ${sql.unsafe(BY_REQUEST)} offset 0) as e
    order by e.id`
}

function describeNotification(
  { receivedAt, code, verified, trusted, paymentId, requestId, amount }: Notification,
  refund: StoredRefund,
): RefundIndication {
  const one = { kind: 'notification' as const, at: toIso(receivedAt) }
  const text = `code ${code}, payment ${paymentId}, amount ${amount}`
  if (!verified) return { ...one, supports: 'neither', text: `${text}; its hash is not verified` }
  const same = requestId.toLowerCase() === refund.refundId && paymentId === refund.paymentId
  if (!same || amount === null || !new Big(amount).eq(refund.amount)) {
    return { ...one, supports: 'neither', text: `${text}; not those of the refund` }
  }
  const result = readResult(code)
  if (result === undefined) return { ...one, supports: 'neither', text }
  const cut = trusted ? text : `${text}; its hash was received with other values as well`
  return { ...one, supports: result === 'success' ? 'succeeded' : 'failed', text: cut }
}

type Growth = {
  asOf: string
  refundedNow: string
  refundedAtFirst: string
  unmatched: string
  /** Less what the success of refunds was inferred from. */
  unexplained: string
}

/** Reads the refunded amount of a payment, and how much of its growth no refund explains (decimal strings). */
export async function readGrowth(
  sql: Context['sql'],
  { merchantCode, paymentId }: Pick<StoredRefund, 'merchantCode' | 'paymentId'>,
): Promise<Growth | undefined> {
  const [row] = await sql<Growth[]>`
    select g.*, g.unmatched - (
        select coalesce(sum(r.amount), 0) from refunds r
        where r.merchant_code = ${merchantCode} and r.payment_id = ${paymentId} and r.status = 'succeeded'
          and r.inferred and not r.matched
      ) as unexplained
    from (
      select as_of as "asOf", refunded_amount as "refundedNow", refunded_at_first as "refundedAtFirst",
        refunded_amount - refunded_at_first - (
          select coalesce(sum(r.amount), 0) from refunds r
          where r.merchant_code = p.merchant_code and r.payment_id = p.payment_id and r.matched
            and not r.in_first_sight
        ) - (
          select coalesce(sum(f.amount), 0) from foreign_refunds f
          where f.merchant_code = p.merchant_code and f.payment_id = p.payment_id and f.matched
            and f.outcome is null
        ) as unmatched
      from payments p where merchant_code = ${merchantCode} and payment_id = ${paymentId}
    ) as g`
  return row
}

function describeGrowth(
  { asOf, refundedNow, refundedAtFirst, unmatched }: Growth,
  { amount, matched, inFirstSight, attempts, refundedBefore }: StoredRefund,
): RefundIndication {
  const grown = new Big(refundedNow).minus(refundedBefore ?? refundedAtFirst)
  const one = { kind: 'growth' as const, at: toIso(asOf) }
  const text = `the refunded amount is ${refundedNow}, ${grown.toFixed()} more than before it was sent; no refund explains ${unmatched} of it`
  if (matched || inFirstSight) {
    return { ...one, supports: 'succeeded', text: `${text}; its amount is matched to this refund` }
  }
  if (grown.gte(amount)) {
    const fits = new Big(unmatched).gte(amount)
    return { ...one, supports: fits ? 'succeeded' : 'neither', text }
  }
  return { ...one, supports: attempts > 0 ? 'failed' : 'neither', text }
}

function describeDecision({ at, to, cause }: Transition): RefundIndication {
  const supports = to === 'failed' ? 'failed' : 'succeeded'
  return { kind: 'decision', at: toIso(at), supports, text: cause }
}

const OF_REFUND = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.refund_id'],
)

/**
 * Whether a notification that is trusted carries the refund's request id: then the gateway has it, whatever is
 * recorded here. One whose payment and amount are those of the refund is trusted even if its hash was received with
 * other values before. Read again under the locks.
 */
export async function isNotified(
  sql: Sql | Tx,
  {
    merchantCode,
    refundId,
    paymentId,
    amount,
  }: Pick<RefundRow, 'merchantCode' | 'refundId' | 'paymentId' | 'amount'>,
): Promise<boolean> {
  const rows = await sql`
    select from (
      select ${merchantCode}::text as merchant_code, ${refundId}::text as refund_id
    ) as k cross join lateral (
      select from ipn_events as e
      where e.kind = 'refund' and e.verdict = 'verified'
        and (e.reading = 1 or (e.payment_id = ${paymentId} and e.amount = ${amount})) and ${sql.unsafe(OF_REFUND)}
      limit 1
    ) as e`
  return rows.length > 0
}
