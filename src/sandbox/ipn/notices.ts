import { LosslessNumber } from 'lossless-json'
import type {
  Book,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'
import { writeSigned } from '../wire.ts'
import { type DeliveryPlan, notify, ONCE } from './notify.ts'

/** Codes a payment's notification carries for each status; 99 means not final. */
const STATUS_CODES: ReadonlyMap<string, { code: number; message: string }> = new Map([
  ['SUCCESS', { code: 0, message: 'Success' }],
  ['FAILED', { code: 1, message: 'Failed' }],
])
const NOT_FINAL = { code: 99, message: 'Processing' }
const NOTHING_PAID = { code: 9, message: 'Waiting for payment' }

/**
 * Sends a transaction's notification (specification 6, fields as such gateways document them). It
 * tells of the newest successful payment, or of the newest one. Resolves after the first attempts.
 */
export function notifyPayment(
  state: SandboxState,
  transaction: SandboxTransaction,
  plan: DeliveryPlan = ONCE,
): Promise<void> {
  const { book, transactionId, payments } = transaction
  const exclude = state.settings.ipnHashExclude
  const payment = payments.findLast(({ status }) => status === 'SUCCESS') ?? payments.at(-1)
  const { code, message } = describePayment(payment)
  const fields = {
    MerchantCode: book.merchantCode,
    Currency: transaction.currency,
    Locale: 'vi',
    Version: '1',
    Command: 'PAY',
    Amount: new LosslessNumber(payment?.amount ?? '0'),
    MerchantTxnID: transaction.merchantTxnId,
    OrderID: transaction.orderId,
    OrderInfo: `Thanh toán đơn hàng ${transaction.orderId}`,
    TransactionID: transactionId,
    ResponseCode: code,
    ResponseMsg: message,
    ExtData: exclude.includes('ExtData') ? transaction.extData : undefined,
  }
  const about = { merchantCode: book.merchantCode, transactionId, requestId: null }
  return notify(state, { ...about, body: sign(state, book, fields, exclude) }, plan)
}

/**
 * Sends a refund's notification with its outcome's code; 0 is success. Its transaction id is the
 * refund's own id. Resolves after the first attempts.
 */
export function notifyRefund(
  state: SandboxState,
  refund: SandboxRefund,
  { code, message }: { code: number; message: string },
  plan: DeliveryPlan = ONCE,
): Promise<void> {
  const { requestId, transId, payment } = refund
  const { book, orderId } = payment.transaction
  const fields = {
    MerchantCode: book.merchantCode,
    Command: 'REFUND',
    OrderID: orderId,
    PaymentID: payment.id,
    RequestID: requestId,
    TransactionID: transId,
    Amount: new LosslessNumber(refund.amount),
    Fee: 0,
    Version: '1',
    ResponseCode: code,
    ResponseMsg: message,
  }
  const about = { merchantCode: book.merchantCode, transactionId: transId, requestId }
  return notify(state, { ...about, body: sign(state, book, fields, []) }, plan)
}

function describePayment(payment: SandboxPayment | undefined) {
  if (payment === undefined) return NOTHING_PAID
  return STATUS_CODES.get(payment.status) ?? NOT_FINAL
}

function sign(
  state: SandboxState,
  book: Book,
  fields: Readonly<Record<string, unknown>>,
  exclude: readonly string[],
): string {
  return writeSigned(fields, book.secret, { prefix: state.settings.fieldPrefix, exclude })
}
