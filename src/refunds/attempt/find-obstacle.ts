import { addAmounts, compareAmounts } from '../../money.ts'
import { computeRefundable } from '../../payments/refundable.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { isInferredUnmatched } from '../own-growth.ts'
import { isFreed, isOpen } from '../transitions.ts'
import type { LockedPayment, RefundDraft, RefundRow } from '../types.ts'

/**
 * Locks the account's hold for a commit that may record an attempt, before any other lock. A hold that is being set
 * waits for such commits, and those that begin later see it. Commits do not block each other, nor the call rate's
 * update of the same row.
 */
export async function lockHold(tx: Tx, merchantCode: string): Promise<void> {
  await tx`select from merchant_accounts where merchant_code = ${merchantCode} for key share`
}

const PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'k')
const REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')

/**
 * The condition that neither the account, the payment nor the refund of `k` (`merchant_code`, `payment_id`,
 * `refund_id`) is held. It counts only in a statement that starts after `lockHold`.
 */
export const NOT_HELD_SQL = `(
    select m.hold from merchant_accounts as m where m.merchant_code = k.merchant_code) is null
  and (select p.hold from payments as p where ${PAYMENT} limit 1) is null
  and (select r.hold from refunds as r where ${REFUND} limit 1) is null`

/** Why a refund must not be sent; `left` is the amount left to refund (decimal string) where that is the reason. */
export type Obstacle = { reason: string; message: string; left?: string }

/**
 * Checks a refund against the newest snapshot. The amount left to refund is computed without the refund
 * itself.
 * @param own the drafts of the payment
 * @returns undefined when the refund may be sent
 */
export function findObstacle(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  draft: RefundDraft,
): Obstacle | undefined {
  if (payment.status !== 'SUCCESS' || payment.missing) {
    const message = payment.missing
      ? 'the gateway no longer lists the payment'
      : `the payment is ${payment.status}`
    return { reason: 'payment_not_refundable', message }
  }
  const others = own.filter((one) => one !== draft && !one.now.inFirstSight).map(({ now }) => now)
  const left = computeRefundable({
    amount: payment.amount,
    refundedNow: payment.countedRefunded ?? payment.refundedNow,
    refundedAtFirst: payment.refundedAtFirst,
    matched: [
      ...others.filter(({ matched }) => matched).map(({ amount }) => amount),
      ...payment.external.filter(({ matched }) => matched).map(({ amount }) => amount),
    ],
    // A notified external refund has moved money, even while the gateway's own sum lags.
    reserved: [
      ...others.filter((one) => !one.matched && one.status !== 'failed' && !isFreed(one)),
      ...payment.external.filter(({ matched }) => !matched),
    ].map(({ amount }) => amount),
  })
  if (compareAmounts(left, draft.now.amount) >= 0) return undefined
  const inferred = others.filter(isInferredUnmatched).map(describeInferred)
  const message = [`only ${left} is left to refund`, ...inferred].join('; ')
  return { reason: 'exceeds_refundable', message, left }
}

function describeInferred({ refundId, amount }: RefundRow): string {
  return `refund ${refundId} of ${amount} was inferred, and stays reserved until it is confirmed`
}

/**
 * Whether the obstacle may clear by itself. An unmatched delta may belong to refunds that are still
 * reserved; their amount is then counted twice until it is matched. The caller neither sends nor fails such
 * a refund.
 */
export function mayClear(
  { left }: Obstacle,
  own: readonly RefundDraft[],
  { now: { amount } }: RefundDraft,
  unmatchedDelta = '0',
): boolean {
  if (left === undefined) return false
  const open = own.filter(({ now }) => isOpen(now) || isInferredUnmatched(now))
  const reserved = addAmounts(open.map(({ now }) => now.amount))
  const twice = compareAmounts(reserved, unmatchedDelta) < 0 ? reserved : unmatchedDelta
  return compareAmounts(addAmounts([left, twice]), amount) >= 0
}
