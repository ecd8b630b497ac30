import { LosslessNumber } from 'lossless-json'
import { addAmounts } from '../../money.ts'
import type { SandboxMerchant, SandboxPayment, SandboxState } from '../state.ts'
import type { PaygateAnswer } from '../types.ts'
import { sumUnsettled } from './balance.ts'
import type { QueryRequest } from './parse-request.ts'
import { refuse, succeed } from './paygate-answers.ts'

/** Answers QUERY_PT with the payments of a transaction (specification 4.3.1, entries 2.4). */
export function answerQuery(
  state: SandboxState,
  merchant: SandboxMerchant,
  request: QueryRequest,
): PaygateAnswer {
  const transaction = merchant.transactions.get(request.TransactionID)
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

/** Returns the `refundedAmount` of QUERY_PT: an override set by control, or the real amount. */
function showRefunded({ refundMode }: SandboxState, payment: SandboxPayment): string {
  if (payment.refundedAmountShown !== null) return payment.refundedAmountShown
  if (!refundMode.countsUnsettled) return payment.refundedAmount
  return addAmounts([payment.refundedAmount, sumUnsettled(payment)])
}
