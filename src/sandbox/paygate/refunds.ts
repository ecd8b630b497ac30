import { randomUUID } from 'node:crypto'
import { addAmounts, compareAmounts, parseAmount } from '../../money.ts'
import { notifyRefund } from '../ipn/notices.ts'
import { ONCE } from '../ipn/notify.ts'
import { makeRefundId } from '../random.ts'
import type { Book, SandboxPayment, SandboxRefund, SandboxState } from '../state.ts'
import { type Answer, refuse, refuseWithCode, succeed } from './codes.ts'
import { sumUnsettled } from './queries.ts'
import { readReceiver } from './receiver.ts'
import type { RefundRequest } from './requests.ts'

const TOO_MANY_DECIMALS = /^\d+\.\d{5,}$/
const SUCCESS = { code: 0, message: 'Success' }

/**
 * REFUND: code 0 means accepted (specification 4.3.2); the money moves when the refund settles. Only
 * accepted refunds occupy their request id. In mode `early` the notification goes out before this
 * answer.
 */
export async function acceptRefund(
  state: SandboxState,
  book: Book,
  request: RefundRequest,
): Promise<Answer> {
  const { dedupes, ipn, settleMs } = state.refundMode
  const amount = parseAmount(request.Amount.value)
  if (amount === undefined) {
    return refuse(
      TOO_MANY_DECIMALS.test(request.Amount.value) ? 'tooManyDecimals' : 'invalidAmount',
    )
  }
  if (compareAmounts(amount, '0') === 0) return refuse('invalidAmount')
  if (dedupes && book.refunds.has(request.RequestID)) return refuse('duplicateRequest')
  const payment = book.payments.get(request.PaymentID)
  if (payment === undefined) return refuse('unknownPayment')
  if (payment.status !== 'SUCCESS') return refuse('notRefundable')
  if (!hasReceiver(payment, request.Receiver)) return refuse('badReceiver')
  if (!fitsBalance(state, payment, amount)) return refuse('exceedsBalance')

  const refund = openRefund(state, payment, amount, request.RequestID)
  if (settleMs !== null) {
    state.background.run(async () => {
      if (!(await state.background.wait(settleMs)) || refund.status !== 'accepted') return
      await settleRefund(state, refund)
    })
  }
  if (ipn === 'early') {
    refund.successTold = true
    await notifyRefund(state, refund, SUCCESS)
  }
  return succeed({ transId: refund.transId })
}

/** Whether the amount fits what is neither refunded nor reserved, unless the mode lets all through. */
export function fitsBalance(state: SandboxState, payment: SandboxPayment, amount: string): boolean {
  if (!state.refundMode.guardsBalance) return true
  const taken = addAmounts([payment.refundedAmount, sumUnsettled(payment), amount])
  return compareAmounts(taken, payment.amount) <= 0
}

/** Enters an accepted refund, under a request id of the gateway's own when none is given. */
export function openRefund(
  state: SandboxState,
  payment: SandboxPayment,
  amount: string,
  requestId: string = randomUUID(),
): SandboxRefund {
  const { refunds } = payment.transaction.book
  const refund: SandboxRefund = {
    requestId,
    transId: makeRefundId(),
    payment,
    amount,
    status: 'accepted',
    mode: state.refundMode,
    successTold: false,
    acceptedAt: new Date().toISOString(),
  }
  payment.refunds.push(refund)
  refunds.set(requestId, [...(refunds.get(requestId) ?? []), refund])
  return refund
}

/**
 * Ends an accepted refund: without a failure code the money moves at once and enters the ledger.
 * Then its notification goes out as its mode says. Resolves after the first attempts of delivery.
 */
export async function settleRefund(
  state: SandboxState,
  refund: SandboxRefund,
  failureCode?: number,
): Promise<void> {
  if (failureCode === undefined) moveMoney(state, refund)
  else refund.status = 'failed'
  const { ipn, lateMs } = refund.mode
  if (ipn === 'never') return
  if (refund.successTold && failureCode === undefined) return
  const outcome = failureCode === undefined ? SUCCESS : refuseWithCode(failureCode)
  const copies = ipn === 'twice' ? 2 : 1
  await notifyRefund(state, refund, outcome, {
    ...ONCE,
    copies,
    delayMs: ipn === 'late' ? lateMs : 0,
  })
}

/** A refund as control answers show it. */
export function showRefund({ payment, mode: _, successTold: __, ...refund }: SandboxRefund) {
  const { book, transactionId } = payment.transaction
  return { ...refund, paymentId: payment.id, transactionId, merchantCode: book.merchantCode }
}

/** Moves the money of an accepted refund, and enters it in the ledger under that time. */
export function moveMoney(
  state: SandboxState,
  refund: SandboxRefund,
  at: string = new Date().toISOString(),
): void {
  const { payment, requestId, transId, amount } = refund
  refund.status = 'succeeded'
  payment.refundedAmount = addAmounts([payment.refundedAmount, amount])
  state.ledger.push({
    requestId,
    transId,
    paymentId: payment.id,
    merchantCode: payment.transaction.book.merchantCode,
    amount,
    at,
  })
}

/** A receiver is needed for QR; a broken one is refused whatever the method. */
function hasReceiver({ paymentMethod }: SandboxPayment, receiver: string | undefined): boolean {
  if (receiver === undefined) return paymentMethod !== 'QR'
  return readReceiver(receiver) !== undefined
}
