import { z } from 'zod'
import { addCards } from '../cards/make-cards.ts'
import { jsonNumber } from '../control-input.ts'
import {
  makePick,
  makeRandom,
  makeRefundId,
  makeRequestId,
  makeTransactionId,
  type PickNumber,
} from '../identifiers.ts'
import { moveMoney, openRefund, showRefund } from '../paygate/refunds.ts'
import { addTransaction, deliveryPlanInput, showTransaction } from '../paygate/transactions.ts'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'
import { findMerchant } from './requests.ts'

/** The body of `POST /sandbox/seed`. Notifications are sent only if `ipn` is given. */
export const seedInput = z.strictObject({
  seed: jsonNumber.pipe(z.number().int().min(0).max(0xffff_ffff)),
  transactions: jsonNumber.pipe(z.number().int().min(0).max(10_000)),
  merchantCode: z.string().min(1).optional(),
  ipn: z.union([deliveryPlanInput, z.literal(false)]).default(false),
})

type SeededPayment = { id: string; amount: string; paymentMethod: string; status: string }

/** `createdAt` of the first transaction, independent of the time of seeding. */
const FIRST_AT = Date.UTC(2026, 0, 1)
const BETWEEN_MS = 7 * 60_000
/** Seeded payment ids start here, above the range of `pickFirstPaymentId`. */
const FIRST_PAYMENT_ID = 2 * 10 ** 12

const METHODS = ['QR', 'ATM', 'CC']
/** Payment statuses of a transaction, oldest first; one line is picked for each transaction. */
const STATUS_HISTORIES: readonly (readonly string[])[] = [
  ['SUCCESS'],
  ['SUCCESS'],
  ['SUCCESS'],
  ['FAILED', 'SUCCESS'],
  ['SUCCESS', 'SUCCESS'],
  ['FAILED'],
  ['FAILED', 'FAILED'],
  ['PROCESSING'],
  ['FAILED', 'PROCESSING'],
  [],
]

/**
 * Makes a population of transactions, refunds and cards in one account, and resets all random
 * generators to the seed. A seed always gives the same ids, amounts and times, and replaces what it
 * made before. Open refunds settle only by a control request.
 * @throws ControlError 409 if a payment id is taken; 422 if there is no such account
 */
export function seedSandbox(
  state: SandboxState,
  { seed, transactions: count, merchantCode }: z.output<typeof seedInput>,
) {
  const merchant = findMerchant(state, merchantCode)
  const pick = makePick(makeRandom(seed))
  const planned = Array.from({ length: count }, (_, index) => planTransaction(pick, index))
  for (const { transactionId } of planned) removeTransaction(state, merchant, transactionId)
  const transactions = planned.map(({ createdAt, ...input }) => {
    const transaction = addTransaction(state, merchant, input)
    transaction.createdAt = createdAt
    return transaction
  })
  const refunds = transactions.flatMap((one) => addRefunds(state, one, pick))
  const cards = addCards(merchant, { seed, name: `${merchant.merchantCode}-${seed}` })
  state.random = makeRandom(seed)
  state.deliveryRandom = makeRandom(seed)
  const population = {
    seed,
    merchantCode: merchant.merchantCode,
    transactions: transactions.map(showTransaction),
    refunds: refunds.map(showRefund),
    cards: cards.map(({ virtualCardRequestId }) => virtualCardRequestId),
  }
  return { population, transactions }
}

function planTransaction(pick: PickNumber, index: number) {
  const at = new Date(FIRST_AT + index * BETWEEN_MS)
  const currency = pick(4) === 0 ? 'USD' : 'VND'
  const amount = makeAmount(pick, currency)
  const transactionId = makeTransactionId(at, pick)
  const statuses = STATUS_HISTORIES[pick(STATUS_HISTORIES.length)] ?? []
  return {
    transactionId,
    orderId: `DH-${transactionId}`,
    currency,
    extData: {},
    createdAt: at.toISOString(),
    payments: statuses.map((status): SeededPayment => {
      const id = String(FIRST_PAYMENT_ID + pick(10 ** 12))
      return { id, amount, paymentMethod: METHODS[pick(METHODS.length)] ?? 'QR', status }
    }),
  }
}

/** Makes whole thousands of VND, or USD with two decimals and sometimes four. */
function makeAmount(pick: PickNumber, currency: string): string {
  if (currency === 'VND') return `${1 + pick(20_000)}000`
  const decimals = pick(5) === 0 ? 4 : 2
  return `${1 + pick(500)}.${String(pick(10 ** decimals)).padStart(decimals, '0')}`
}

/** Adds a refund to a third of the successful payments: full, of one unit, failed or open. */
function addRefunds(
  state: SandboxState,
  { payments, createdAt }: SandboxTransaction,
  pick: PickNumber,
): SandboxRefund[] {
  return payments
    .filter(({ status }) => status === 'SUCCESS')
    .flatMap((payment) => {
      const variant = (['full', 'oneUnit', 'failed', 'open'] as const)[pick(12)]
      if (variant === undefined) return []
      const amount = variant === 'oneUnit' ? '1' : payment.amount
      const refund = openRefund(state, payment, amount, makeRequestId(pick))
      refund.transId = makeRefundId(pick)
      refund.acceptedAt = createdAt
      if (variant === 'failed') refund.status = 'failed'
      else if (variant !== 'open') moveMoney(state, refund, createdAt)
      return [refund]
    })
}

/** Removes a transaction with its payments and refunds; refunds waiting to settle end as failed. */
function removeTransaction(
  state: SandboxState,
  merchant: SandboxMerchant,
  transactionId: string,
): void {
  const payments = merchant.transactions.get(transactionId)?.payments ?? []
  for (const payment of payments) removePayment(state, merchant, payment)
  merchant.transactions.delete(transactionId)
}

function removePayment(
  state: SandboxState,
  merchant: SandboxMerchant,
  payment: SandboxPayment,
): void {
  for (const refund of payment.refunds) {
    if (refund.status === 'accepted') refund.status = 'failed'
    const others = merchant.refunds.get(refund.requestId)?.filter((one) => one !== refund) ?? []
    if (others.length === 0) merchant.refunds.delete(refund.requestId)
    else merchant.refunds.set(refund.requestId, others)
  }
  merchant.payments.delete(payment.id)
  state.ledger = state.ledger.filter(
    ({ paymentId, merchantCode }) =>
      paymentId !== payment.id || merchantCode !== merchant.merchantCode,
  )
}
