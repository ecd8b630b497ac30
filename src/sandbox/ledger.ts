import { randomUUID } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import type { z } from 'zod'
import { addAmounts, compareAmounts, isPositive, parseAmount } from '../money.ts'
import {
  ControlError,
  type DeliveryPlan,
  type PortalRefund,
  type RefundMode,
  type refundModeInput,
  type TransactionInput,
} from './input.ts'
import { ONCE, sendRefundIpn } from './notify.ts'
import { makeRefundId, makeTransactionId } from './random.ts'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from './state.ts'
import {
  answerWithCode,
  type PaygateAnswer,
  type QueryRequest,
  type RefundRequest,
  readReceiver,
  refuse,
  succeed,
} from './wire.ts'

/**
 * Makes a transaction with its payments, or adds the payments to an existing one and changes nothing else of it.
 * @throws ControlError 409 if a payment id is taken; then nothing is added
 */
export function addTransaction(
  state: SandboxState,
  merchant: SandboxMerchant,
  input: TransactionInput,
): SandboxTransaction {
  const ids = input.payments.map((payment) => payment.id).filter((given) => given !== undefined)
  const taken = ids.find((given, at) => merchant.payments.has(given) || ids.indexOf(given) !== at)
  if (taken !== undefined) throw new ControlError(409, 'payments', `payment ${taken} exists`)

  const transactionId = input.transactionId ?? makeTransactionId(new Date())
  const transaction = merchant.transactions.get(transactionId) ?? {
    transactionId,
    merchant,
    orderId: input.orderId ?? `DH-${transactionId}`,
    merchantTxnId: input.merchantTxnId ?? `T-${transactionId}`,
    currency: input.currency,
    payToken: input.payToken,
    transAmount: input.transAmount,
    amount: input.amount ?? null,
    extData: input.extData ?? (merchant.transactions.size % 2 === 1 ? {} : undefined),
    createdAt: new Date().toISOString(),
    payments: [],
  }
  merchant.transactions.set(transactionId, transaction)
  for (const {
    id = nextPaymentId(state, merchant),
    status,
    amount,
    paymentMethod,
  } of input.payments) {
    const payment: SandboxPayment = {
      id,
      transaction,
      status,
      amount,
      paymentMethod,
      refundedAmount: '0',
      refundedAmountShown: null,
      listed: true,
      refunds: [],
    }
    transaction.payments.push(payment)
    merchant.payments.set(id, payment)
  }
  return transaction
}

function nextPaymentId(state: SandboxState, merchant: SandboxMerchant): string {
  do state.lastPaymentId += 1
  while (merchant.payments.has(String(state.lastPaymentId)))
  return String(state.lastPaymentId)
}

/** Answers QUERY_PT with the payments of a transaction (specification 4.3.1, entries 2.4). */
export function answerQuery(
  { refundMode }: SandboxState,
  merchant: SandboxMerchant,
  request: QueryRequest,
): PaygateAnswer {
  const transaction = merchant.transactions.get(request.TransactionID)
  if (transaction === undefined) return refuse('unknownTransaction')
  const listed = transaction.payments.filter((payment) => payment.listed)
  return succeed(
    listed.map((payment) => {
      const { id, status, amount, paymentMethod, refundedAmount, refundedAmountShown } = payment
      const unsettled = refundMode.countsUnsettled ? sumUnsettled(payment) : '0'
      const refunded = refundedAmountShown ?? addAmounts([refundedAmount, unsettled])
      return {
        id,
        status,
        amount: new LosslessNumber(amount),
        paymentMethod,
        refundedAmount: new LosslessNumber(refunded),
      }
    }),
  )
}

function sumUnsettled({ refunds }: SandboxPayment): string {
  const unsettled = refunds.filter(({ status }) => status === 'accepted')
  return addAmounts(unsettled.map(({ amount }) => amount))
}

/** Whether the amount fits what is neither refunded nor reserved, if the mode guards it. */
function fitsBalance(
  { refundMode }: SandboxState,
  payment: SandboxPayment,
  amount: string,
): boolean {
  if (!refundMode.guardsBalance) return true
  const taken = addAmounts([payment.refundedAmount, sumUnsettled(payment), amount])
  return compareAmounts(taken, payment.amount) <= 0
}

const TOO_MANY_DECIMALS = /^\d+\.\d{5,}$/

/**
 * Answers REFUND. Code 0 means accepted (specification 4.3.2): the money moves when the refund settles. Only accepted
 * refunds occupy their request id. In mode `early` the notification is sent before this answer.
 */
export async function acceptRefund(
  state: SandboxState,
  merchant: SandboxMerchant,
  request: RefundRequest,
): Promise<PaygateAnswer> {
  const { refundMode, background } = state
  const { dedupes, ipn, settleMs } = refundMode
  const amount = parseAmount(request.Amount.value)
  if (amount === undefined && TOO_MANY_DECIMALS.test(request.Amount.value)) {
    return refuse('tooManyDecimals')
  }
  if (amount === undefined || !isPositive(amount)) return refuse('invalidAmount')
  if (dedupes && merchant.refunds.has(request.RequestID)) return refuse('duplicateRequest')
  const payment = merchant.payments.get(request.PaymentID)
  if (payment === undefined) return refuse('unknownPayment')
  if (payment.status !== 'SUCCESS') return refuse('notRefundable')
  if (!hasReceiver(payment, request.Receiver)) return refuse('badReceiver')
  if (!fitsBalance(state, payment, amount)) return refuse('exceedsBalance')

  const refund = openRefund(state, payment, amount, request.RequestID)
  if (settleMs !== null) {
    background.run(async () => {
      if (!(await background.wait(settleMs)) || refund.status !== 'accepted') return
      await settleRefund(state, refund)
    })
  }
  if (ipn === 'early') {
    refund.successNotified = true
    await sendRefundIpn(state, refund, answerWithCode(0))
  }
  return succeed({ transId: refund.transId })
}

/** Only QR requires a receiver, but an invalid one is refused for any method. */
function hasReceiver({ paymentMethod }: SandboxPayment, receiver: string | undefined): boolean {
  if (receiver === undefined) return paymentMethod !== 'QR'
  return readReceiver(receiver) !== undefined
}

export function openRefund(
  { refundMode }: SandboxState,
  payment: SandboxPayment,
  amount: string,
  requestId: string = randomUUID(),
): SandboxRefund {
  const { refunds } = payment.transaction.merchant
  const refund: SandboxRefund = {
    requestId,
    transId: makeRefundId(),
    payment,
    amount,
    status: 'accepted',
    mode: refundMode,
    successNotified: false,
    acceptedAt: new Date().toISOString(),
  }
  payment.refunds.push(refund)
  refunds.set(requestId, [...(refunds.get(requestId) ?? []), refund])
  return refund
}

/**
 * Refunds a payment as on the gateway's own portal: the money moves at once.
 * @returns the refund, and a promise of the first attempts to deliver its notification
 * @throws ControlError 409 if the amount exceeds the balance and the mode guards it
 */
export function refundAtPortal(
  state: SandboxState,
  payment: SandboxPayment,
  { amount, fee, ipn }: PortalRefund,
): { refund: SandboxRefund; notified: Promise<void> } {
  if (!fitsBalance(state, payment, amount)) {
    throw new ControlError(409, 'amount', 'exceeds the remaining balance of the payment')
  }
  const refund = openRefund(state, payment, amount)
  refund.fee = fee
  return { refund, notified: settleRefund(state, refund, undefined, ipn) }
}

/**
 * Settles an accepted refund: its money moves at once, unless there is a failure code. Then it is notified by the
 * plan, by default that of its mode; `false` sends nothing. Resolves after the first delivery attempts.
 */
export async function settleRefund(
  state: SandboxState,
  refund: SandboxRefund,
  failureCode?: number,
  plan: DeliveryPlan | false = planByMode(refund.mode),
): Promise<void> {
  if (failureCode === undefined) moveMoney(state, refund)
  else refund.status = 'failed'
  if (plan === false || (refund.successNotified && failureCode === undefined)) return
  await sendRefundIpn(state, refund, answerWithCode(failureCode ?? 0), plan)
}

function planByMode({ ipn, lateMs }: RefundMode): DeliveryPlan | false {
  if (ipn === 'never') return false
  return { ...ONCE, copies: ipn === 'twice' ? 2 : 1, delayMs: ipn === 'late' ? lateMs : 0 }
}

/** Completes a mode. @param refundMs the default time to settle */
export function makeRefundMode(
  { settleMs, ...mode }: z.output<typeof refundModeInput>,
  refundMs: number,
): RefundMode {
  return {
    ...mode,
    settleMs: settleMs === undefined ? refundMs : settleMs,
    lateMs: 10 * (settleMs || refundMs),
  }
}

export function moveMoney(
  { ledger }: SandboxState,
  refund: SandboxRefund,
  at: string = new Date().toISOString(),
): void {
  const { payment, requestId, transId, amount } = refund
  const { merchantCode } = payment.transaction.merchant
  refund.status = 'succeeded'
  payment.refundedAmount = addAmounts([payment.refundedAmount, amount])
  ledger.push({ requestId, transId, paymentId: payment.id, merchantCode, amount, at })
}

export function showPayment({ transaction, refunds: _, ...payment }: SandboxPayment) {
  const { transactionId, merchant } = transaction
  return { ...payment, transactionId, merchantCode: merchant.merchantCode }
}

export function showTransaction({ merchant, payments, ...transaction }: SandboxTransaction) {
  const { merchantCode } = merchant
  return { ...transaction, merchantCode, payments: payments.map(showPayment) }
}

export function showRefund({ payment, mode: _, successNotified: __, ...refund }: SandboxRefund) {
  const { merchant, transactionId } = payment.transaction
  return { ...refund, paymentId: payment.id, transactionId, merchantCode: merchant.merchantCode }
}
