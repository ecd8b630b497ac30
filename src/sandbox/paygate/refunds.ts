import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { addAmounts, compareAmounts, parseAmount } from '../../money.ts'
import { ControlError, countOrMs, decimalAmount } from '../control-input.ts'
import { makeRefundId } from '../identifiers.ts'
import { type DeliveryPlan, ONCE, sendRefundIpn } from '../ipn.ts'
import type { SandboxMerchant, SandboxPayment, SandboxRefund, SandboxState } from '../state.ts'
import type { PaygateAnswer, RefundMode } from '../types.ts'
import { type RefundRequest, refuse, refuseWithCode, succeed } from './requests.ts'
import { fitsBalance, type portalRefundInput } from './transactions.ts'

/** The body of `PUT /sandbox/refund-mode`. It replaces the mode; omitted members take their default. */
export const refundModeInput = z.strictObject({
  ipn: z.enum(['normal', 'early', 'late', 'twice', 'never']).default('normal'),
  dedupes: z.boolean().default(true),
  guardsBalance: z.boolean().default(true),
  countsUnsettled: z.boolean().default(false),
  fee: decimalAmount.default('0'),
  settleMs: countOrMs.nullable().optional(),
})

/** Completes a mode; `refundMs` is the default settling time in milliseconds. */
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

const receiver = z.object({
  accountName: z.string().min(1),
  accountNumber: z.string().min(1),
  swiftCode: z.string().min(1),
})

/**
 * Reads `svc_Receiver`: standard padded Base64 of a JSON object with three string members
 * (specification 4.3.2).
 * @returns `undefined` if it is anything else
 */
export function readReceiver(text: string): z.output<typeof receiver> | undefined {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) return undefined
  try {
    return receiver.safeParse(JSON.parse(bytes.toString('utf8'))).data
  } catch {
    return undefined
  }
}

/** Masks a receiver for the journal: only the last four digits of the account number are kept. */
export function maskReceiver(text: unknown): unknown {
  const known = typeof text === 'string' ? readReceiver(text) : undefined
  if (known === undefined) return '(unreadable)'
  return { ...known, accountNumber: `•••• ${known.accountNumber.slice(-4)}` }
}

const TOO_MANY_DECIMALS = /^\d+\.\d{5,}$/
const SUCCESS = { code: 0, message: 'Success' }

/**
 * Answers REFUND. Code 0 means accepted (specification 4.3.2); the money moves when the refund
 * settles. Only accepted refunds occupy their request id. In mode `early` the notification is sent
 * before this answer.
 */
export async function acceptRefund(
  state: SandboxState,
  merchant: SandboxMerchant,
  request: RefundRequest,
): Promise<PaygateAnswer> {
  const { dedupes, ipn, settleMs } = state.refundMode
  const amount = parseAmount(request.Amount.value)
  if (amount === undefined) {
    return refuse(
      TOO_MANY_DECIMALS.test(request.Amount.value) ? 'tooManyDecimals' : 'invalidAmount',
    )
  }
  if (compareAmounts(amount, '0') === 0) return refuse('invalidAmount')
  if (dedupes && merchant.refunds.has(request.RequestID)) return refuse('duplicateRequest')
  const payment = merchant.payments.get(request.PaymentID)
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
    refund.successNotified = true
    await sendRefundIpn(state, refund, SUCCESS)
  }
  return succeed({ transId: refund.transId })
}

/** Adds an accepted refund; without a request id, under a generated one. */
export function openRefund(
  { refundMode }: Pick<SandboxState, 'refundMode'>,
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
 * @returns the refund, and the first attempts to deliver its notification
 * @throws ControlError 409 when the amount exceeds the balance, if the mode guards it
 */
export function refundAtPortal(
  state: SandboxState,
  payment: SandboxPayment,
  { amount, fee, ipn }: z.output<typeof portalRefundInput>,
): { refund: SandboxRefund; notified: Promise<void> } {
  if (!fitsBalance(state, payment, amount)) {
    throw new ControlError(409, 'amount', 'exceeds the remaining balance of the payment')
  }
  const refund = openRefund(state, payment, amount)
  refund.fee = fee
  return { refund, notified: settleRefund(state, refund, undefined, ipn) }
}

/** The code and the message of a notification; 0 is success. */
export function describeOutcome(code: number): { code: number; message: string } {
  return code === 0 ? SUCCESS : refuseWithCode(code)
}

/**
 * Settles an accepted refund. Without a failure code its money moves immediately and enters the
 * ledger. Its notification is then sent according to the plan, or without one to its mode; `false` sends
 * none. Resolves after the first delivery attempts.
 */
export async function settleRefund(
  state: SandboxState,
  refund: SandboxRefund,
  failureCode?: number,
  plan: DeliveryPlan | false = planByMode(refund.mode),
): Promise<void> {
  if (failureCode === undefined) moveMoney(state, refund)
  else refund.status = 'failed'
  if (plan === false) return
  if (refund.successNotified && failureCode === undefined) return
  await sendRefundIpn(state, refund, describeOutcome(failureCode ?? 0), plan)
}

function planByMode({ ipn, lateMs }: RefundMode): DeliveryPlan | false {
  if (ipn === 'never') return false
  return { ...ONCE, copies: ipn === 'twice' ? 2 : 1, delayMs: ipn === 'late' ? lateMs : 0 }
}

/** Builds the JSON of a refund for control responses. */
export function showRefund({ payment, mode: _, successNotified: __, ...refund }: SandboxRefund) {
  const { merchant, transactionId } = payment.transaction
  return { ...refund, paymentId: payment.id, transactionId, merchantCode: merchant.merchantCode }
}

/** Moves the money of an accepted refund and records it in the ledger. */
export function moveMoney(
  { ledger }: Pick<SandboxState, 'ledger'>,
  refund: SandboxRefund,
  at: string = new Date().toISOString(),
): void {
  const { payment, requestId, transId, amount } = refund
  refund.status = 'succeeded'
  payment.refundedAmount = addAmounts([payment.refundedAmount, amount])
  ledger.push({
    requestId,
    transId,
    paymentId: payment.id,
    merchantCode: payment.transaction.merchant.merchantCode,
    amount,
    at,
  })
}

/** A receiver is required for QR only; an invalid one is refused for any method. */
function hasReceiver({ paymentMethod }: SandboxPayment, receiver: string | undefined): boolean {
  if (receiver === undefined) return paymentMethod !== 'QR'
  return readReceiver(receiver) !== undefined
}
