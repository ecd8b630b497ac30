import { z } from 'zod'
import { ControlError, readAmount, readCount } from '../input.ts'
import type { DeliveryPlan } from '../ipn/notify.ts'
import { makeTransactionId } from '../random.ts'
import {
  type Book,
  nextPaymentId,
  type SandboxPayment,
  type SandboxState,
  type SandboxTransaction,
} from '../state.ts'

const id = z.string().min(1).max(128)

/** Statuses and methods outside the specification's lists (2.4) are allowed: gateways grow new ones. */
const paymentInput = z.strictObject({
  id: id.optional(),
  amount: readAmount,
  paymentMethod: z.string().min(1),
  status: z.string().min(1),
})

export const planInput = z.strictObject({
  copies: readCount.pipe(z.number().min(1).max(10_000)).default(1),
  delayMs: readCount.default(0),
  shuffle: z.boolean().default(false),
}) satisfies z.ZodType<DeliveryPlan>

export const transactionInput = z.strictObject({
  transactionId: id.optional(),
  merchantCode: id.optional(),
  orderId: id.optional(),
  merchantTxnId: id.optional(),
  currency: z.string().min(1).default('VND'),
  extData: z.record(z.string(), z.unknown()).optional(),
  payments: z.array(paymentInput),
  ipn: z.union([planInput, z.literal(false)]).optional(),
})

export const paymentChange = z.strictObject({
  status: z.string().min(1).optional(),
  amount: readAmount.optional(),
  paymentMethod: z.string().min(1).optional(),
  refundedAmount: readAmount.optional(),
  refundedAmountShown: readAmount.nullable().optional(),
  listed: z.boolean().optional(),
})

/**
 * Makes a transaction with its payments, or adds the payments to one that exists (whose other
 * members stay as they are).
 * @throws ControlError 409 when a payment id is taken; nothing is made then
 */
export function addTransaction(
  state: SandboxState,
  book: Book,
  input: z.output<typeof transactionInput>,
): SandboxTransaction {
  const ids = input.payments.map((payment) => payment.id).filter((given) => given !== undefined)
  const taken = ids.find((given, at) => book.payments.has(given) || ids.indexOf(given) !== at)
  if (taken !== undefined) throw new ControlError(409, 'payments', `payment ${taken} exists`)

  const transactionId = input.transactionId ?? makeTransactionId(new Date())
  const transaction = book.transactions.get(transactionId) ?? {
    transactionId,
    book,
    orderId: input.orderId ?? `DH-${transactionId}`,
    merchantTxnId: input.merchantTxnId ?? `T-${transactionId}`,
    currency: input.currency,
    extData: input.extData ?? (book.transactions.size % 2 === 1 ? {} : undefined),
    createdAt: new Date().toISOString(),
    payments: [],
  }
  book.transactions.set(transactionId, transaction)
  for (const given of input.payments) {
    const payment: SandboxPayment = {
      id: given.id ?? nextPaymentId(state, book),
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
    book.payments.set(payment.id, payment)
  }
  return transaction
}

/** A payment as control answers show it, amounts as strings. */
export function showPayment({ transaction, refunds: _, ...payment }: SandboxPayment) {
  const { transactionId, book } = transaction
  return { ...payment, transactionId, merchantCode: book.merchantCode }
}

/** A transaction as control answers show it, with all its payments. */
export function showTransaction({ book, payments, ...transaction }: SandboxTransaction) {
  return {
    ...transaction,
    merchantCode: book.merchantCode,
    payments: payments.map(showPayment),
  }
}
