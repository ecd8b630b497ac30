import { z } from '@hono/zod-openapi'
import { Big } from 'big.js'
import type { Context } from '../context.ts'
import { isOpenCode, isResultCode } from '../gateway/response-codes.ts'
import { Time } from '../http/fields.ts'
import { compareAmounts } from '../money.ts'
import { byExpressions } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { DECIDED_CAUSE } from './external-view.ts'
import type { RefundRecord } from './find.ts'
import { RELEASED } from './lifecycle.ts'
import { hasNotGrown } from './measure.ts'
import type { WeighedNotification } from './types.ts'

type RefundIdentity = Pick<RefundRecord['refund'], 'refundId' | 'paymentId' | 'amount'>

/** What a notification proves about a refund of ours. */
type Weight = {
  /** Its request id (in any case), payment and amount are the refund's. Then its place does not matter. */
  same: boolean
  settles: 'success' | 'failure' | undefined
  /** It shows that the gateway has the refund, which then does not end as unsent. */
  stops: boolean
}

/** Whatever believes a notification, or stops because of one, asks here. An unverified notification is only a hint. */
export function weigh(one: WeighedNotification, own: RefundIdentity): Weight {
  const isOwn = one.verified && one.requestId.toLowerCase() === own.refundId
  const { paymentId, amount } = one
  const isFitting =
    paymentId === own.paymentId && amount !== null && compareAmounts(amount, own.amount) === 0
  const same = isOwn && isFitting
  const settles = same ? readResult(one.code) : undefined
  return { same, settles, stops: same || (isOwn && one.reading === 1) }
}

/** What a notification's code means; undefined if it is missing or open, or if no gateway writes it. */
export function readResult(code: string | null): 'success' | 'failure' | undefined {
  if (code === null || !isResultCode(code) || isOpenCode(code)) return undefined
  return code === '0' ? 'success' : 'failure'
}

export const Indication = z.strictObject({
  kind: z.enum(['answer', 'notification', 'growth', 'decision']).openapi({
    description:
      "An answer to an attempt, a notification, the payment's refunded amount, or a person's decision",
  }),
  supports: z.enum(['succeeded', 'failed', 'neither']),
  at: Time,
  text: z.string(),
})

type RefundIndication = z.infer<typeof Indication>

type StoredRefund = RefundRecord['refund']

type Attempt = { at: string; outcome: string | null; code: string | null; message: string | null }
type Transition = { at: string; to: string; cause: string }

export async function readIndications(
  { db: { sql } }: Pick<Context, 'db'>,
  refund: StoredRefund,
  attempts: readonly Attempt[],
  transitions: readonly Transition[],
): Promise<RefundIndication[]> {
  const notifications = await readNotifications(sql, refund)
  const growth = await readGrowth(sql, refund)
  const isAnswered = await hasAnswerSince(sql, refund)
  return [
    ...attempts.map(describeAnswer),
    ...notifications.map((one) => describeNotification(one, refund)),
    ...(growth ? [describeGrowth(growth, refund, isAnswered)] : []),
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
  const what = outcome === 'unavailable' ? 'not sent' : 'no answer'
  return { ...answer, supports: 'neither', text: `${what}${explanation}` }
}

/** Notifications `e` of the request id of `k`, in SQL. */
export const BY_REQUEST_ID = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.request_id'],
)

async function readNotifications(
  sql: Sql | Tx,
  { merchantCode, refundId }: Pick<StoredRefund, 'merchantCode' | 'refundId'>,
): Promise<(WeighedNotification & { receivedAt: string })[]> {
  return await sql<(WeighedNotification & { receivedAt: string })[]>`
    select e.first_received_at as "receivedAt", e.code, e.verdict = 'verified' as verified, e.reading,
      e.payment_id as "paymentId", e.request_id as "requestId", e.amount
    from (select ${merchantCode}::text as merchant_code, ${refundId}::text as request_id) as k
    cross join lateral (
      select * from ipn_events as e where e.kind = 'refund' and ${sql.unsafe(BY_REQUEST_ID)} offset 0) as e
    order by e.id`
}

/**
 * Whether a trusted notification carries the refund's request id, so that the gateway has it and it does not end as
 * unsent. Handled ones count as well, because an attempt that wrote no byte turns a refund back into an unsent one.
 */
export async function isNotified(
  sql: Sql | Tx,
  refund: RefundIdentity & Pick<StoredRefund, 'merchantCode'>,
): Promise<boolean> {
  return (await readNotifications(sql, refund)).some((one) => weigh(one, refund).stops)
}

function describeNotification(
  one: WeighedNotification & { receivedAt: string },
  refund: StoredRefund,
): RefundIndication {
  const { same, settles } = weigh(one, refund)
  const indication = { kind: 'notification' as const, at: toIso(one.receivedAt) }
  const text = `code ${one.code}, payment ${one.paymentId}, amount ${one.amount}`
  if (settles !== undefined) {
    const cut = one.reading === 1 ? '' : '; its hash was received with other values as well'
    const supports = settles === 'success' ? 'succeeded' : 'failed'
    return { ...indication, supports, text: `${text}${cut}` }
  }
  const why = one.verified ? 'not those of the refund' : 'its hash is not verified'
  return { ...indication, supports: 'neither', text: same ? text : `${text}; ${why}` }
}

type Growth = {
  asOf: string
  refundedNow: string
  refundedAtFirst: string
  unmatched: string
  /** `unmatched` without the growth that successes were inferred from. */
  unexplained: string
  /** What the amount may lack already, because refunds of it came back (`measureReturning`). */
  returning: string
  /** The newest answer shows a lower amount, which does not count yet. */
  isFalling: boolean
}

/** Reads the refunded amount of a payment, and how much of its growth no refund explains (decimal strings). */
export async function readGrowth(
  sql: Sql,
  { merchantCode, paymentId }: Pick<StoredRefund, 'merchantCode' | 'paymentId'>,
): Promise<Growth | undefined> {
  const [row] = await sql<Growth[]>`
    select g.*, g.unmatched - (
        select coalesce(sum(r.amount), 0) from refunds r
        where r.merchant_code = ${merchantCode} and r.payment_id = ${paymentId} and r.status = 'succeeded'
          and r.inferred and not r.matched
      ) as unexplained
    from (
      select as_of as "asOf", coalesce(counted_refunded, refunded_amount) as "refundedNow",
        refunded_at_first as "refundedAtFirst",
        coalesce(counted_refunded, refunded_amount) - refunded_at_first - (
          select coalesce(sum(r.amount), 0) from refunds r
          where r.merchant_code = p.merchant_code and r.payment_id = p.payment_id and r.matched
            and not r.in_first_sight
        ) - (
          select coalesce(sum(f.amount), 0) from external_refunds f
          where f.merchant_code = p.merchant_code and f.payment_id = p.payment_id and f.matched
            and f.outcome is null
        ) as unmatched, counted_refunded is not null as "isFalling", (
          select coalesce(sum(r.amount), 0) from refunds r
          where r.merchant_code = p.merchant_code and r.payment_id = p.payment_id and r.status = 'returned'
            and case when r.return_sightings < ${RELEASED} then r.matched or r.in_first_sight
              else r.return_seen_at is null end
        ) as returning
      from payments p where merchant_code = ${merchantCode} and payment_id = ${paymentId}
    ) as g`
  return row
}

/**
 * Whether an answer that lists the payment was asked for after the last attempt whose bytes may have left: after the
 * answer on which that was sent and, because retention may have removed that one, after the time of the attempt.
 */
async function hasAnswerSince(
  sql: Sql,
  { merchantCode, paymentId, refundId, lastSentAt }: StoredRefund,
): Promise<boolean> {
  const rows = await sql`
    select from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId}
      and as_of > greatest(${lastSentAt}::timestamptz, (
        select max(c.sent_at) from refund_attempts a
          join gateway_calls c on c.merchant_code = a.merchant_code and c.id = a.snapshot_call_id
        where a.merchant_code = ${merchantCode} and a.refund_id = ${refundId}
          and a.outcome is distinct from 'unavailable'))`
  return rows.length > 0
}

function describeGrowth(
  growth: Growth,
  refund: StoredRefund,
  isAnswered: boolean,
): RefundIndication {
  const { asOf, refundedNow, refundedAtFirst, unmatched } = growth
  const { amount, matched, inFirstSight, attempts, refundedBefore } = refund
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
  if (attempts > 0 && !isAnswered) {
    const since = 'no answer about the payment has come since it was sent'
    return { ...one, supports: 'neither', text: `${text}; ${since}` }
  }
  const isUnmoved =
    !growth.isFalling && hasNotGrown(refund, { ...growth, unmatchedDelta: unmatched })
  return { ...one, supports: attempts > 0 && isUnmoved ? 'failed' : 'neither', text }
}

function describeDecision({ at, to, cause }: Transition): RefundIndication {
  const supports = to === 'failed' ? 'failed' : 'succeeded'
  return { kind: 'decision', at: toIso(at), supports, text: cause }
}
