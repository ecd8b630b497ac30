import { SYNC_DUE } from '../../db/names.ts'
import { addAmounts, compareAmounts } from '../../money.ts'
import { computeRefundable } from '../../payments/refundable.ts'
import { notifyAfterCommit } from '../../platform/postgres/notify.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { MAKE_DUE } from '../../transactions/due.ts'
import { isFreed, transition } from '../transitions.ts'
import type { LockedPayment, RefundDraft } from '../types.ts'
import { countSurplus } from './count-surplus.ts'
import { type OrderPayment, readOrderPayments, requestConfirmation } from './read-order-payments.ts'

type LockedOrder = { drafts: readonly RefundDraft[]; payments: readonly LockedPayment[] }

/**
 * Whether one success of the order is left without a surplus refund that is about to be sent: a success may have been
 * withdrawn since it was requested. If none is left, the refund fails. While only another transaction's answer from
 * before the request speaks for it, that transaction is queried, and the refund waits; so it does while anything about a
 * payment of the order is doubtful.
 *
 * Refunds that were requested later do not count: a customer who returns the goods does not lose what was paid twice.
 */
export async function isStillSurplus(
  tx: Tx,
  draft: RefundDraft,
  locked: LockedOrder,
  callId: number,
): Promise<boolean> {
  const { now } = draft
  const stored = await readOrderPayments(tx, now, now.refundId)
  const payments = stored.flatMap((one) => (one.own ? measureOwn(one, draft, locked) : [one]))
  const isSurplus = (some: readonly OrderPayment[]) => {
    const { amount, unpaid } = countSurplus(some)
    return !unpaid && compareAmounts(amount, '0') >= 0
  }
  if (isSurplus(payments.filter(({ confirmed }) => confirmed))) return true
  if (isSurplus(payments) || payments.some(({ doubtful }) => doubtful)) {
    if (await requestConfirmation(tx, now, MAKE_DUE)) notifyAfterCommit(tx, SYNC_DUE)
    return false
  }
  const failureMessage = 'nothing is left of what was paid beyond one success of the order'
  const failure = { failureSource: 'service' as const, failureReason: 'not_surplus' }
  const reason = `check before sending: ${failureMessage}; nothing was sent`
  transition(draft, 'failed', { reason, callId }, { ...failure, failureMessage })
  return false
}

/** A payment of the transaction itself, as this commit will leave it: its refunds are not written yet. */
function measureOwn(
  stored: OrderPayment,
  { now: { refundId } }: RefundDraft,
  { drafts, payments }: LockedOrder,
): OrderPayment[] {
  const payment = payments.find(({ paymentId }) => paymentId === stored.paymentId)
  if (!payment) return []
  const place = drafts.findIndex(({ now }) => now.refundId === refundId)
  const isCounted = ({ now }: RefundDraft) => now.status !== 'failed' && !isFreed(now)
  const own = drafts.filter((one) => one.now.paymentId === stored.paymentId && isCounted(one))
  const later = own.filter((one) => drafts.indexOf(one) > place && !one.now.surplus)
  const refunds = own.map(({ now }) => now).filter(({ inFirstSight }) => !inFirstSight)
  const list = (matched: boolean) =>
    [...refunds, ...payment.external]
      .filter((one) => one.matched === matched)
      .map(({ amount }) => amount)
  const { refundedAtFirst, countedRefunded } = payment
  const refundedNow = countedRefunded ?? payment.refundedNow
  const amount = compareAmounts(payment.amount, stored.amount) < 0 ? payment.amount : stored.amount
  const facts = { amount, refundedNow, refundedAtFirst }
  const refundable = computeRefundable({ ...facts, matched: list(true), reserved: list(false) })
  const refundedLater = addAmounts(later.map(({ now }) => now.amount))
  return [{ ...stored, refundable, refundedLater }]
}
