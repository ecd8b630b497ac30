import { LosslessNumber } from 'lossless-json'
import { addAmounts } from '../../money.ts'
import type { Book, SandboxPayment, SandboxState } from '../state.ts'
import { type Answer, refuse, succeed } from './codes.ts'
import type { QueryRequest } from './requests.ts'

/** QUERY_PT: the payments of a transaction (specification 4.3.1, entries 2.4). */
export function answerQuery(state: SandboxState, book: Book, request: QueryRequest): Answer {
  const transaction = book.transactions.get(request.TransactionID)
  if (transaction === undefined) return refuse('unknownTransaction')
  const listed = transaction.payments.filter((payment) => payment.listed)
  return succeed(
    listed.map((payment) => ({
      id: payment.id,
      status: payment.status,
      amount: new LosslessNumber(payment.amount),
      paymentMethod: payment.paymentMethod,
      refundedAmount: new LosslessNumber(showRefunded(state, payment)),
    })),
  )
}

/** Accepted refunds of a payment that have neither moved money nor failed yet. */
export function sumUnsettled(payment: SandboxPayment): string {
  const unsettled = payment.refunds.filter(({ status }) => status === 'accepted')
  return addAmounts(unsettled.map(({ amount }) => amount))
}

/** What QUERY_PT says was refunded: a shown amount set by control wins over the real one. */
function showRefunded(state: SandboxState, payment: SandboxPayment): string {
  if (payment.refundedAmountShown !== null) return payment.refundedAmountShown
  if (!state.refundMode.countsUnsettled) return payment.refundedAmount
  return addAmounts([payment.refundedAmount, sumUnsettled(payment)])
}
