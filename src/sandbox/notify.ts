import { createHash } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import { request } from 'undici'
import { z } from 'zod'
import { recordEntry, takeFault } from './exchange.ts'
import type { DeliveryPlan } from './input.ts'
import type { JournalEntry, SandboxRefund, SandboxState, SandboxTransaction } from './state.ts'
import { type Fields, JSON_TYPE, type PaygateAnswer, writeSigned } from './wire.ts'

export const ONCE: DeliveryPlan = { copies: 1, delayMs: 0, shuffle: false }

const STATUS_CODES: ReadonlyMap<string, PaygateAnswer> = new Map([
  ['SUCCESS', { code: 0, message: 'Success' }],
  ['FAILED', { code: 1, message: 'Failed' }],
])
const NOT_FINAL = { code: 99, message: 'Processing' }
const NOTHING_PAID = { code: 9, message: 'Waiting for payment' }

/**
 * Sends a transaction's notification (specification 6; fields as gateways of this family document them). It reports
 * the newest successful payment, or else the newest one, and the amount of the order if the transaction has that.
 * Resolves after the first attempts.
 */
export function sendPaymentIpn(
  state: SandboxState,
  transaction: SandboxTransaction,
  plan: DeliveryPlan = ONCE,
): Promise<void> {
  const { merchant, transactionId, payments } = transaction
  const exclude = state.settings.ipnHashExclude
  const payment = payments.findLast(({ status }) => status === 'SUCCESS') ?? payments.at(-1)
  const { code, message } = payment ? (STATUS_CODES.get(payment.status) ?? NOT_FINAL) : NOTHING_PAID
  const fields = {
    MerchantCode: merchant.merchantCode,
    Currency: transaction.currency,
    Locale: 'vi',
    Version: '1',
    Command: 'PAY',
    Amount: new LosslessNumber(transaction.amount ?? payment?.amount ?? '0'),
    MerchantTxnID: transaction.merchantTxnId,
    OrderID: transaction.orderId,
    OrderInfo: `Thanh toán đơn hàng ${transaction.orderId}`,
    TransactionID: transactionId,
    PayToken: transaction.payToken,
    TransAmount: transaction.transAmount && new LosslessNumber(transaction.transAmount),
    ResponseCode: code,
    ResponseMsg: message,
    ExtData: exclude.includes('ExtData') ? transaction.extData : undefined,
  }
  return deliver(state, { merchant, transactionId, requestId: null, fields, exclude }, plan)
}

/** Sends a refund's notification with the code of its outcome. Resolves after the first attempts. */
export function sendRefundIpn(
  state: SandboxState,
  refund: SandboxRefund,
  { code, message }: PaygateAnswer,
  plan: DeliveryPlan = ONCE,
): Promise<void> {
  const { requestId, transId, payment } = refund
  const { merchant, orderId } = payment.transaction
  const fields = {
    MerchantCode: merchant.merchantCode,
    Command: 'REFUND',
    OrderID: orderId,
    PaymentID: payment.id,
    RequestID: requestId,
    TransactionID: transId,
    Amount: new LosslessNumber(refund.amount),
    Fee: new LosslessNumber(refund.fee ?? refund.mode.fee),
    Version: '1',
    ResponseCode: code,
    ResponseMsg: message,
  }
  const transactionId = transId
  return deliver(state, { merchant, transactionId, requestId, fields, exclude: [] }, plan)
}

/** A notification before it is signed. Of a refund, `transactionId` is the refund's own id. */
type Notification = Pick<SandboxTransaction, 'merchant' | 'transactionId'> & {
  requestId: string | null
  fields: Fields
  exclude: readonly string[]
}

type Message = {
  url: string
  body: string
  entry: Pick<JournalEntry, 'merchantCode' | 'transactionId' | 'requestId' | 'rawBodySha256'>
}

/**
 * Delivers a notification to the IPN URL, if one is set. Resolves after the first attempt of each copy. Copies that
 * are not acknowledged (HTTP 200, `respcode` 0) are retried in the background. Never rejects.
 */
async function deliver(
  state: SandboxState,
  { merchant, transactionId, requestId, fields, exclude }: Notification,
  plan: DeliveryPlan,
): Promise<void> {
  const { ipnUrl: url, background, settings } = state
  if (url === undefined) return
  const replaced = Object.entries(plan.fields ?? {}).map(([name, value]) => [
    name,
    value ?? undefined,
  ])
  const rule = { prefix: settings.fieldPrefix, exclude }
  const body = writeSigned({ ...fields, ...Object.fromEntries(replaced) }, merchant.secret, rule)
  const rawBodySha256 = createHash('sha256').update(body).digest('hex')
  const { merchantCode } = merchant
  const message = { url, body, entry: { merchantCode, transactionId, requestId, rawBodySha256 } }
  const deliverCopy = async () => {
    const { delayMs, shuffle } = plan
    const waitMs = shuffle ? Math.floor(state.deliveryRandom() * delayMs) : delayMs
    if (!(await background.wait(waitMs))) return
    if (await attemptDelivery(state, message, 1)) return
    background.run(() => retryDelivery(state, message))
  }
  await Promise.all(Array.from({ length: plan.copies }, deliverCopy))
}

async function retryDelivery(state: SandboxState, message: Message): Promise<void> {
  for (const [index, waitMs] of state.settings.ipnRetryMs.entries()) {
    if (!(await state.background.wait(waitMs))) return
    if (await attemptDelivery(state, message, index + 2)) return
  }
}

/**
 * Returns `true` if the delivery has ended. The faults `acceptThen…` deliver, but ignore the acknowledgement; every
 * other fault except `delay` loses the copy for good.
 */
async function attemptDelivery(
  state: SandboxState,
  { url, body, entry: members }: Message,
  attempt: number,
): Promise<boolean> {
  const fault = takeFault(state, 'ipn', state.deliveryRandom)
  const entry = recordEntry(state, {
    command: 'ipn',
    outcome: fault?.kind ?? 'sending',
    url,
    attempt,
    status: null,
    respcode: null,
    ...members,
  })
  const isUnheard = fault?.kind.startsWith('acceptThen') ?? false
  if (fault !== undefined && fault.kind !== 'delay' && !isUnheard) return true
  if (fault?.kind === 'delay' && !(await state.background.wait(fault.delayMs))) return true
  try {
    const response = await request(url, {
      method: 'POST',
      headers: JSON_TYPE,
      body,
      dispatcher: state.agent,
    })
    entry.respcode = readRespcode(await response.body.text())
    entry.status = response.statusCode
    if (isUnheard) return false
    entry.outcome = entry.status === 200 && entry.respcode === 0 ? 'acknowledged' : 'refused'
  } catch {
    entry.outcome = 'unanswered'
  }
  return entry.outcome === 'acknowledged'
}

const acknowledgement = z.object({ respcode: z.number() })

function readRespcode(text: string): number | null {
  try {
    return acknowledgement.safeParse(JSON.parse(text)).data?.respcode ?? null
  } catch {
    return null
  }
}
