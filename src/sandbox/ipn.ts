import { createHash } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import { request } from 'undici'
import { z } from 'zod'
import { takeFault } from './faults.ts'
import { type IpnEntry, recordEntry } from './journal.ts'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from './state.ts'
import { writeSigned } from './wire-format.ts'

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

/** A signed notification. `transactionId` is `svc_TransactionID`: for a refund the refund's own id. */
export type IpnMessage = {
  merchantCode: string
  transactionId: string
  requestId: string | null
  body: string
}

/**
 * Sends each copy after `delayMs`; with `shuffle` at a random moment within `delayMs`. `fields` replace members of the
 * notification before it is signed, by names without prefix; null leaves one out.
 */
export type DeliveryPlan = {
  copies: number
  delayMs: number
  shuffle: boolean
  fields?: Readonly<Record<string, unknown>> | undefined
}

export const ONCE: DeliveryPlan = { copies: 1, delayMs: 0, shuffle: false }

const acknowledgement = z.object({ respcode: z.number() })

/**
 * Delivers a notification to the current IPN URL; does nothing if none is set. Resolves after the
 * first attempt of each copy. Copies that are not acknowledged (HTTP 200, `respcode` 0) are retried in
 * the background on the sandbox's schedule. Never throws.
 */
export async function deliverIpn(
  state: SandboxState,
  message: IpnMessage,
  { copies, delayMs, shuffle }: DeliveryPlan,
): Promise<void> {
  const url = state.ipnUrl
  if (url === undefined) return
  const deliverCopy = async () => {
    const waitMs = shuffle ? Math.floor(state.deliveryRandom() * delayMs) : delayMs
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, message, url, 1)) return
    state.background.run(() => retryDelivery(state, message, url))
  }
  await Promise.all(Array.from({ length: copies }, deliverCopy))
}

async function retryDelivery(state: SandboxState, message: IpnMessage, url: string) {
  let attempt = 1
  for (const waitMs of state.settings.ipnRetryMs) {
    attempt += 1
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, message, url, attempt)) return
  }
}

/** Returns `true` if the delivery has ended. A fault other than `delay` drops the copy for good. */
async function attemptDelivery(
  state: SandboxState,
  { body, ...ids }: IpnMessage,
  url: string,
  attempt: number,
): Promise<boolean> {
  const fault = takeFault(state.faults, 'ipn', state.deliveryRandom)
  const entry = recordEntry<IpnEntry>(state.journal, {
    command: 'ipn',
    at: new Date().toISOString(),
    outcome: fault?.kind ?? 'sending',
    url,
    attempt,
    status: null,
    respcode: null,
    ...ids,
    rawBodySha256: createHash('sha256').update(body).digest('hex'),
  })
  if (fault !== undefined && fault.kind !== 'delay') return true
  if (fault !== undefined && !(await state.background.wait(fault.delayMs))) return true
  try {
    const { status, text } = await post(state, url, body)
    entry.status = status
    entry.respcode = readRespcode(text)
    entry.outcome = status === 200 && entry.respcode === 0 ? 'acknowledged' : 'refused'
  } catch {
    entry.outcome = 'unanswered'
  }
  return entry.outcome === 'acknowledged'
}

async function post({ agent }: SandboxState, url: string, body: string) {
  const response = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body,
    dispatcher: agent,
  })
  return { status: response.statusCode, text: await response.body.text() }
}

function readRespcode(text: string): number | null {
  try {
    return acknowledgement.safeParse(JSON.parse(text)).data?.respcode ?? null
  } catch {
    return null
  }
}
