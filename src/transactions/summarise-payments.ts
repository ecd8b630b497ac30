import { addAmounts, compareAmounts } from '../money.ts'
import { getCountedStatus } from '../payments/compare-payments.ts'
import { isRecognised } from '../payments/view.ts'

export type TransactionState = 'pending' | 'paid' | 'partially_refunded' | 'refunded' | 'failed'

export type PaymentFacts = {
  status: string
  /** Set while a success has an undocumented status: the status that counts. */
  countedStatus: string | null
  amount: string
  refundedAmount: string
  paymentMethod: string
}

export type PaymentsSummary = {
  state: TransactionState
  /** No further change is expected without a new request. */
  final: boolean
  paidAmount: string
  refundedAmount: string
  /** More than one payment succeeded. */
  duplicatePayment: boolean
}

/** A payment with an undocumented status or method counts as open, never as final. */
export function summarisePayments(payments: readonly PaymentFacts[]): PaymentsSummary {
  const paid = listPaid(payments)
  const open = hasOpen(payments)
  const paidAmount = addAmounts(paid.map(({ amount }) => amount))
  const refundedAmount = addAmounts(paid.map((payment) => payment.refundedAmount))
  const failed = payments.length > 0 && !open
  const unpaid = failed ? 'failed' : 'pending'
  return {
    state: paid.length === 0 ? unpaid : deriveState(paidAmount, refundedAmount),
    final: paid.length === 0 ? failed : !open,
    paidAmount,
    refundedAmount,
    duplicatePayment: paid.length > 1,
  }
}

export function listPaid<T extends Pick<PaymentFacts, 'status' | 'countedStatus'>>(
  payments: readonly T[],
): T[] {
  return payments.filter((one) => getCountedStatus(one) === 'SUCCESS')
}

/** Whether what the gateway says about some payment may still change. */
export function hasOpen(payments: readonly PaymentFacts[]): boolean {
  return payments.some((one) => one.status === 'PROCESSING' || !isRecognised(one))
}

export function isPaid(state: TransactionState): boolean {
  return state !== 'pending' && state !== 'failed'
}

function deriveState(paidAmount: string, refundedAmount: string): TransactionState {
  if (compareAmounts(refundedAmount, '0') === 0) return 'paid'
  return compareAmounts(refundedAmount, paidAmount) < 0 ? 'partially_refunded' : 'refunded'
}
