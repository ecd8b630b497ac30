import { addAmounts, compareAmounts } from '../money.ts'
import { isRecognised } from '../payments/is-recognised.ts'

export type TransactionState = 'pending' | 'paid' | 'partially_refunded' | 'refunded' | 'failed'

export type PaymentFacts = {
  status: string
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
  /** More than one payment succeeded: the customer probably paid twice. */
  duplicatePayment: boolean
}

/**
 * Derives a transaction's state and totals from its payments. An undocumented status or method counts as open, never
 * as final.
 */
export function summarisePayments(payments: readonly PaymentFacts[]): PaymentsSummary {
  const paid = payments.filter(({ status }) => status === 'SUCCESS')
  const open = payments.some((one) => one.status === 'PROCESSING' || !isRecognised(one))
  const paidAmount = addAmounts(paid.map(({ amount }) => amount))
  const refundedAmount = addAmounts(paid.map((payment) => payment.refundedAmount))
  if (paid.length === 0) {
    const failed = payments.length > 0 && !open
    return {
      state: failed ? 'failed' : 'pending',
      final: failed,
      paidAmount,
      refundedAmount,
      duplicatePayment: false,
    }
  }
  return {
    state: deriveState(paidAmount, refundedAmount),
    final: !open,
    paidAmount,
    refundedAmount,
    duplicatePayment: paid.length > 1,
  }
}

/** Whether a payment of a transaction in this state has succeeded. */
export function isPaid(state: TransactionState): boolean {
  return state !== 'pending' && state !== 'failed'
}

function deriveState(paidAmount: string, refundedAmount: string): TransactionState {
  if (compareAmounts(refundedAmount, '0') === 0) return 'paid'
  return compareAmounts(refundedAmount, paidAmount) < 0 ? 'partially_refunded' : 'refunded'
}
