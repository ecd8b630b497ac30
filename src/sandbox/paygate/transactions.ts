import { LosslessNumber } from 'lossless-json'
import { z } from 'zod'
import { addAmounts, compareAmounts } from '../../money.ts'
import { ControlError, countOrMs, decimalAmount, positiveAmount } from '../control-input.ts'
import { makeTransactionId } from '../identifiers.ts'
import type { DeliveryPlan } from '../ipn.ts'
import {
  nextPaymentId,
  type SandboxMerchant,
  type SandboxPayment,
  type SandboxState,
  type SandboxTransaction,
} from '../state.ts'

/** Sums the accepted refunds of a payment that have neither moved money nor failed. */
export function sumUnsettled({ refunds }: SandboxPayment): string {
  const unsettled = refunds.filter(({ status }) => status === 'accepted')
  return addAmounts(unsettled.map(({ amount }) => amount))
}

/**
 * Returns whether the amount fits the balance that is neither refunded nor reserved; always `true` if
 * the mode does not guard the balance.
 */
export function fitsBalance(
  { refundMode }: Pick<SandboxState, 'refundMode'>,
  payment: SandboxPayment,
  amount: string,
): boolean {
  if (!refundMode.guardsBalance) return true
  const taken = addAmounts([payment.refundedAmount, sumUnsettled(payment), amount])
  return compareAmounts(taken, payment.amount) <= 0
}

const id = z.string().min(1).max(128)

const fieldValue = z.union([
  z.string(),
  z.boolean(),
  z.null(),
  z.instanceof(LosslessNumber),
  z.array(z.union([z.string(), z.boolean(), z.instanceof(LosslessNumber)])),
])

/** How notifications are sent: the body of `POST …/ipn`, and the member `ipn` of other bodies. */
export const deliveryPlanInput = z.strictObject({
  copies: countOrMs.pipe(z.number().min(1).max(10_000)).default(1),
  delayMs: countOrMs.default(0),
  shuffle: z.boolean().default(false),
  fields: z.record(z.string().regex(/^\w{1,64}$/), fieldValue).optional(),
}) satisfies z.ZodType<DeliveryPlan>

/** The body of `POST /sandbox/payments/{id}/portal-refund`. Without `ipn` its notification follows the refund mode. */
export const portalRefundInput = z.strictObject({
  amount: positiveAmount,
  fee: decimalAmount.optional(),
  ipn: z.union([deliveryPlanInput, z.literal(false)]).optional(),
})

/** A payment to make. Statuses and methods outside the specification (2.4) are allowed. */
const paymentInput = z.strictObject({
  id: id.optional(),
  amount: decimalAmount,
  paymentMethod: z.string().min(1),
  status: z.string().min(1),
  /** Refunds made at the portal before the notification of the transaction is sent. */
  portalRefunds: z.array(portalRefundInput).optional(),
})

/** The body of `POST /sandbox/transactions`. */
export const transactionInput = z.strictObject({
  transactionId: id.optional(),
  merchantCode: id.optional(),
  orderId: id.optional(),
  merchantTxnId: id.optional(),
  currency: z.string().min(1).default('VND'),
  amount: positiveAmount.optional(),
  extData: z.record(z.string(), z.unknown()).optional(),
  payToken: z.string().min(1).optional(),
  transAmount: decimalAmount.optional(),
  payments: z.array(paymentInput),
  ipn: z.union([deliveryPlanInput, z.literal(false)]).optional(),
})

/** The body of `PATCH /sandbox/payments/{id}`. */
export const paymentChange = z.strictObject({
  status: z.string().min(1).optional(),
  amount: decimalAmount.optional(),
  paymentMethod: z.string().min(1).optional(),
  refundedAmount: decimalAmount.optional(),
  refundedAmountShown: decimalAmount.nullable().optional(),
  listed: z.boolean().optional(),
})

/**
 * Makes a transaction with its payments, or adds the payments to an existing one, whose other members
 * do not change.
 * @throws ControlError 409 if a payment id is taken; nothing is added then
 */
export function addTransaction(
  state: SandboxState,
  merchant: SandboxMerchant,
  input: z.output<typeof transactionInput>,
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
  for (const given of input.payments) {
    const payment: SandboxPayment = {
      id: given.id ?? nextPaymentId(state, merchant),
      transaction,
      status: given.status,
      amount: given.amount,
      paymentMethod: given.paymentMethod,
      refundedAmount: '0',
      refundedAmountShown: null,
      listed: true,
      refunds: [],
    }
    transaction.payments.push(payment)
    merchant.payments.set(payment.id, payment)
  }
  return transaction
}

/** Builds the JSON of a payment for control responses, amounts as decimal strings. */
export function showPayment({ transaction, refunds: _, ...payment }: SandboxPayment) {
  const { transactionId, merchant } = transaction
  return { ...payment, transactionId, merchantCode: merchant.merchantCode }
}

/** Builds the JSON of a transaction for control responses, with all its payments. */
export function showTransaction({ merchant, payments, ...transaction }: SandboxTransaction) {
  return {
    ...transaction,
    merchantCode: merchant.merchantCode,
    payments: payments.map(showPayment),
  }
}
