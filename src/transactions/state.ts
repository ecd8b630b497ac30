import { addAmounts, compareAmounts } from '../money.ts'

export type TransactionState = 'pending' | 'paid' | 'partially_refunded' | 'refunded' | 'failed'

export type PaymentFacts = { status: string; amount: string; refundedAmount: string }

export type Summary = {
  state: TransactionState
  /** Nothing more is expected to change by itself. */
  final: boolean
  paidAmount: string
  refundedAmount: string
  /** More than one payment succeeded: the payer probably paid twice. */
  duplicatePayment: boolean
}

/** What a transaction's payments add up to. A status nobody documented counts as open, never as an end. */
export function summarisePayments(payments: readonly PaymentFacts[]): Summary {
  const paid = payments.filter(({ status }) => status === 'SUCCESS')
  const open = payments.some(({ status }) => status !== 'SUCCESS' && status !== 'FAILED')
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
    state: nameState(paidAmount, refundedAmount),
    final: !open,
    paidAmount,
    refundedAmount,
    duplicatePayment: paid.length > 1,
  }
}

function nameState(paidAmount: string, refundedAmount: string): TransactionState {
  if (compareAmounts(refundedAmount, '0') === 0) return 'paid'
  return compareAmounts(refundedAmount, paidAmount) < 0 ? 'partially_refunded' : 'refunded'
}
