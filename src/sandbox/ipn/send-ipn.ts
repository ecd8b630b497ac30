import { LosslessNumber } from 'lossless-json'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'
import { writeSigned } from '../wire-format.ts'
import { type DeliveryPlan, deliverIpn, ONCE } from './deliver-ipn.ts'

/** Response codes of a payment's notification by final status; others use 99, not final. */
const STATUS_CODES: ReadonlyMap<string, { code: number; message: string }> = new Map([
  ['SUCCESS', { code: 0, message: 'Success' }],
  ['FAILED', { code: 1, message: 'Failed' }],
])
const NOT_FINAL = { code: 99, message: 'Processing' }
const NOTHING_PAID = { code: 9, message: 'Waiting for payment' }

/**
 * Sends a transaction's notification (specification 6; fields as gateways of this family document
 * them). It reports the newest successful payment, or else the newest payment; its amount is the
 * order's, if the transaction has one. Resolves after the first attempts.
 */
export function sendPaymentIpn(
  state: SandboxState,
  transaction: SandboxTransaction,
  plan: DeliveryPlan = ONCE,
): Promise<void> {
  const { merchant, transactionId, payments } = transaction
  const { merchantCode } = merchant
  const exclude = state.settings.ipnHashExclude
  const payment = payments.findLast(({ status }) => status === 'SUCCESS') ?? payments.at(-1)
  const { code, message } = describePayment(payment)
  const amount = transaction.amount ?? payment?.amount ?? '0'
  const fields = {
    MerchantCode: merchantCode,
    Currency: transaction.currency,
    Locale: 'vi',
    Version: '1',
    Command: 'PAY',
    Amount: new LosslessNumber(amount),
    MerchantTxnID: transaction.merchantTxnId,
    OrderID: transaction.orderId,
    OrderInfo: `Thanh toán đơn hàng ${transaction.orderId}`,
    TransactionID: transactionId,
    PayToken: transaction.payToken,
    TransAmount: writeAmount(transaction.transAmount),
    ResponseCode: code,
    ResponseMsg: message,
    ExtData: exclude.includes('ExtData') ? transaction.extData : undefined,
  }
  const body = sign(state, merchant, replaceFields(fields, plan), exclude)
  return deliverIpn(state, { merchantCode, transactionId, requestId: null, body }, plan)
}

/**
 * Sends a refund's notification with the code of its outcome; 0 is success. Its transaction id is the
 * refund's own id. Resolves after the first attempts.
 */
export function sendRefundIpn(
  state: SandboxState,
  refund: SandboxRefund,
  { code, message }: { code: number; message: string },
  plan: DeliveryPlan = ONCE,
): Promise<void> {
  const { requestId, transId, payment } = refund
  const { merchant, orderId } = payment.transaction
  const { merchantCode } = merchant
  const fields = {
    MerchantCode: merchantCode,
    Command: 'REFUND',
    OrderID: orderId,
    PaymentID: payment.id,
    RequestID: requestId,
    TransactionID: transId,
    Amount: new LosslessNumber(refund.amount),
    Fee: writeAmount(refund.fee ?? refund.mode.fee),
    Version: '1',
    ResponseCode: code,
    ResponseMsg: message,
  }
  const body = sign(state, merchant, replaceFields(fields, plan), [])
  return deliverIpn(state, { merchantCode, transactionId: transId, requestId, body }, plan)
}

function describePayment(payment: SandboxPayment | undefined) {
  if (payment === undefined) return NOTHING_PAID
  return STATUS_CODES.get(payment.status) ?? NOT_FINAL
}

function writeAmount(amount: string | undefined): LosslessNumber | undefined {
  return amount === undefined ? undefined : new LosslessNumber(amount)
}

function replaceFields(
  fields: Readonly<Record<string, unknown>>,
  plan: DeliveryPlan,
): Readonly<Record<string, unknown>> {
  if (plan.fields === undefined) return fields
  const replaced = Object.entries(plan.fields).map(([name, value]) => [name, value ?? undefined])
  return { ...fields, ...Object.fromEntries(replaced) }
}

function sign(
  { settings }: SandboxState,
  { secret }: SandboxMerchant,
  fields: Readonly<Record<string, unknown>>,
  exclude: readonly string[],
): string {
  return writeSigned(fields, secret, { prefix: settings.fieldPrefix, exclude })
}
