import { Big } from 'big.js'
import { addAmounts } from '../money.ts'
import { computeRefundable } from '../payments/find-payments.ts'
import { isFreed, type RefundDraft, type RefundRow } from './lifecycle.ts'
import type { Finding, LockedPayment } from './types.ts'

/** `unexplained` is above zero. The two sides identify the discrepancy: an answer and a decision open the same one. */
export function buildGrowthFinding(
  { paymentId, refundedNow }: Pick<LockedPayment, 'paymentId' | 'refundedNow'>,
  unexplained: string,
): Finding {
  return {
    kind: 'unexplained_growth',
    ours: `no refund explains ${unexplained} of it`,
    theirs: `refundedAmount ${refundedNow}`,
    paymentId,
  }
}

/** The growth of a payment that is matched to no refund; negative when less is refunded than is matched. */
export function measureUnmatched(
  {
    paymentId,
    refundedNow,
    refundedAtFirst,
    external,
  }: Pick<LockedPayment, 'paymentId' | 'refundedNow' | 'refundedAtFirst' | 'external'>,
  drafts: readonly RefundDraft[],
): string {
  const own = drafts.flatMap(({ now }) => (now.paymentId === paymentId ? [now] : []))
  const matched = [
    ...own.filter((one) => one.matched && !one.inFirstSight),
    ...external.filter((one) => one.matched),
  ]
  const grown = new Big(refundedNow).minus(refundedAtFirst)
  return matched.reduce((left, { amount }) => left.minus(amount), grown).toFixed()
}

/** The unmatched growth that no success was inferred from either, so that nothing explains it. */
export function measureUnexplained(
  payment: Pick<LockedPayment, 'paymentId' | 'refundedNow' | 'refundedAtFirst' | 'external'>,
  drafts: readonly RefundDraft[],
): string {
  const inferred = listInferred(payment, drafts).map(({ amount }) => amount)
  return new Big(measureUnmatched(payment, drafts)).minus(addAmounts(inferred)).toFixed()
}

/** The unmatched growth of the refunded amount that counts: a lower one takes back nothing before it is confirmed. */
export function measureCounted(payment: LockedPayment, drafts: readonly RefundDraft[]): string {
  const refundedNow = payment.countedRefunded ?? payment.refundedNow
  return measureUnmatched({ ...payment, refundedNow }, drafts)
}

const listInferred = ({ paymentId }: { paymentId: string }, drafts: readonly RefundDraft[]) =>
  drafts.flatMap(({ now }) =>
    now.paymentId === paymentId && isInferredUnmatched(now) ? [now] : [],
  )

/** Whether its success was inferred, so that it stays reserved until it is known. */
export function isInferredUnmatched({ status, inferred, matched }: RefundRow): boolean {
  return status === 'succeeded' && inferred && !matched
}

/** What an answer shows about a payment once its refunded delta is matched. */
export type SnapshotView = Pick<LockedPayment, 'refundedNow' | 'refundedAtFirst' | 'returning'> & {
  callId: number
  unmatchedDelta: string
}

/** How much the refunded amount has grown since a refund was first sent, plus what came back and may hide as much. */
export function measureGrown(
  { refundedBefore }: Pick<RefundRow, 'refundedBefore'>,
  { refundedNow, refundedAtFirst, returning }: Omit<SnapshotView, 'callId' | 'unmatchedDelta'>,
): Big {
  return new Big(refundedNow).minus(refundedBefore ?? refundedAtFirst).plus(returning)
}

/**
 * Whether the refunded amount has grown by less than the refund since it was first sent, whoever caused that. A
 * refunded amount below what refunds explain, or below what it was then, is a stale answer and shows nothing.
 */
export function hasNotGrown(
  row: Pick<RefundRow, 'amount' | 'refundedBefore'>,
  shown: Omit<SnapshotView, 'callId'>,
): boolean {
  if (new Big(shown.unmatchedDelta).lt(0)) return false
  const grown = measureGrown(row, shown)
  return grown.gte(0) && grown.lt(row.amount)
}

/** Whether a lost row of the refund may have been sent: then the refund is neither sent nor ended as unsent. */
export function mayBeItsOwnGrowth(unmatchedDelta: string, { amount }: { amount: string }): boolean {
  return new Big(unmatchedDelta).gte(amount)
}

/** How much of a payment this commit leaves to refund. `own` are its refunds that count. */
export function measureRefundable(
  { refundedNow, refundedAtFirst, countedRefunded, external }: LockedPayment,
  own: readonly RefundRow[],
  amount: string,
): string {
  // A notified external refund has moved money, even while the gateway's own sum lags behind.
  const list = (isMatched: boolean) =>
    [...own.filter(isCounted), ...external]
      .filter(({ matched }) => matched === isMatched)
      .map((one) => one.amount)
  return computeRefundable({
    ...{ amount, refundedNow: countedRefunded ?? refundedNow, refundedAtFirst },
    ...{ matched: list(true), reserved: list(false) },
  })
}

/** Whether a refund reduces what is left: it did not fail, come back, or happen before the first answer. */
function isCounted(one: RefundRow): boolean {
  return one.status !== 'failed' && !isFreed(one) && !one.inFirstSight
}

type Locked = { payments: readonly LockedPayment[]; drafts: readonly RefundDraft[] }

export const FORGOTTEN = 'the database was restored since, and may have forgotten that it was sent'

/** Why an unsent refund is left to a person and does not fail: a lost row of it may have been sent. */
export function explainMayHaveMoved(locked: Locked, row: RefundRow): string | undefined {
  if (row.requestedBeforeRestore) return FORGOTTEN
  const payment = findPayment(locked, row)
  if (!payment?.listed) return 'the gateway does not list its payment any more, or not readably'
  return describeOwnGrowth(payment, locked, row)
}

/** Why a refund is not ended as unsent, and what to do first, if its payment shows growth of its amount. */
export function explainOwnGrowth(locked: Locked, row: RefundRow): string | undefined {
  const payment = findPayment(locked, row)
  const grown = payment && describeOwnGrowth(payment, locked, row)
  return payment && grown && `${grown}. ${listSteps(payment, locked)}, then repeat the request`
}

function findPayment({ payments }: Locked, { paymentId }: RefundRow): LockedPayment | undefined {
  return payments.find((one) => one.paymentId === paymentId)
}

function describeOwnGrowth(
  payment: LockedPayment,
  { drafts }: Locked,
  row: RefundRow,
): string | undefined {
  const { paymentId, refundedNow, countedRefunded } = payment
  const unmatched = measureCounted(payment, drafts)
  if (!mayBeItsOwnGrowth(unmatched, row)) return undefined
  return `${unmatched} of the refunded amount ${countedRefunded ?? refundedNow} of payment ${paymentId} are not explained by a known refund, and may be this refund`
}

/** Growth that the newest answer does not show is no discrepancy, and only another answer can tell. */
function listSteps(payment: LockedPayment, { drafts }: Locked): string {
  const steps = listInferred(payment, drafts).map(
    ({ refundId: id }) =>
      `confirm or deny refund ${id}, which is only inferred, with POST /v1/refunds/${id}/resolution`,
  )
  if (payment.countedRefunded !== null) {
    steps.push(
      `wait for another answer of the gateway: the newest one shows ${payment.refundedNow}, which counts once a second one confirms it`,
    )
  }
  if (new Big(measureUnexplained(payment, drafts)).gt(0)) {
    steps.push(
      'resolve the discrepancy `unexplained_growth` of the payment with POST /v1/discrepancies/{id}/resolution',
    )
  }
  return `First ${steps.join('; ')}`
}
