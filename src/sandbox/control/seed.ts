import { z } from 'zod'
import { addCards } from '../cards/make.ts'
import { readNumber } from '../input.ts'
import { moveMoney, openRefund, showRefund } from '../paygate/refunds.ts'
import { addTransaction, planInput, showTransaction } from '../paygate/transactions.ts'
import {
  makePick,
  makeRandom,
  makeRefundId,
  makeRequestId,
  makeTransactionId,
  type Pick,
} from '../random.ts'
import type {
  Book,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'
import { findBook } from './find.ts'

/** The body of `POST /sandbox/seed`. No notification is sent unless `ipn` says how. */
export const seedInput = z.strictObject({
  seed: readNumber.pipe(z.number().int().min(0).max(0xffff_ffff)),
  transactions: readNumber.pipe(z.number().int().min(0).max(10_000)),
  merchantCode: z.string().min(1).optional(),
  ipn: z.union([planInput, z.literal(false)]).default(false),
})

type PaymentWish = { id: string; amount: string; paymentMethod: string; status: string }

/** The first seeded transaction is of this moment, whenever it is seeded. */
const FIRST_AT = Date.UTC(2026, 0, 1)
const BETWEEN_MS = 7 * 60_000
/** Payment ids from here on: the sandbox's own start below (`pickFirstPaymentId`). */
const FIRST_PAYMENT_ID = 2 * 10 ** 12

const METHODS = ['QR', 'ATM', 'CC']
/** The statuses of a transaction's payments, oldest first; one line of it is picked for each. */
const STORIES: readonly (readonly string[])[] = [
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
 * Makes a population of transactions, refunds and cards in one account, and sets every dice back to
 * the seed. One seed always gives the same ids, amounts and times; what it made before is replaced.
 * Refunds that are not over wait for control.
 * @throws ControlError 409 when a payment id is taken; 422 when there is no such account
 */
export function seedSandbox(
  state: SandboxState,
  { seed, transactions: count, merchantCode }: z.output<typeof seedInput>,
) {
  const book = findBook(state, merchantCode)
  const pick = makePick(makeRandom(seed))
  const wishes = Array.from({ length: count }, (_, index) => planTransaction(pick, index))
  for (const { transactionId } of wishes) dropTransaction(state, book, transactionId)
  const transactions = wishes.map(({ createdAt, ...wish }) => {
    const transaction = addTransaction(state, book, wish)
    transaction.createdAt = createdAt
    return transaction
  })
  const refunds = transactions.flatMap((one) => addRefunds(state, one, pick))
  const cards = addCards(book, { seed, name: `${book.merchantCode}-${seed}` })
  state.random = makeRandom(seed)
  state.deliveryRandom = makeRandom(seed)
  const population = {
    seed,
    merchantCode: book.merchantCode,
    transactions: transactions.map(showTransaction),
    refunds: refunds.map(showRefund),
    cards: cards.map(({ virtualCardRequestId }) => virtualCardRequestId),
  }
  return { population, transactions }
}

function planTransaction(pick: Pick, index: number) {
  const at = new Date(FIRST_AT + index * BETWEEN_MS)
  const currency = pick(4) === 0 ? 'USD' : 'VND'
  const amount = makeAmount(pick, currency)
  const transactionId = makeTransactionId(at, pick)
  const statuses = STORIES[pick(STORIES.length)] ?? []
  return {
    transactionId,
    orderId: `DH-${transactionId}`,
    currency,
    extData: {},
    createdAt: at.toISOString(),
    payments: statuses.map((status): PaymentWish => {
      const id = String(FIRST_PAYMENT_ID + pick(10 ** 12))
      return { id, amount, paymentMethod: METHODS[pick(METHODS.length)] ?? 'QR', status }
    }),
  }
}

/** Whole thousands of VND, or USD with two decimals, at times with four. */
function makeAmount(pick: Pick, currency: string): string {
  if (currency === 'VND') return `${1 + pick(20_000)}000`
  const decimals = pick(5) === 0 ? 4 : 2
  return `${1 + pick(500)}.${String(pick(10 ** decimals)).padStart(decimals, '0')}`
}

/** A third of the successful payments has a refund: all of it, one unit of it, a failed or an open one. */
function addRefunds(
  state: SandboxState,
  { payments, createdAt }: SandboxTransaction,
  pick: Pick,
): SandboxRefund[] {
  return payments
    .filter(({ status }) => status === 'SUCCESS')
    .flatMap((payment) => {
      const kind = (['whole', 'part', 'failed', 'open'] as const)[pick(12)]
      if (kind === undefined) return []
      const amount = kind === 'part' ? '1' : payment.amount
      const refund = openRefund(state, payment, amount, makeRequestId(pick))
      refund.transId = makeRefundId(pick)
      refund.acceptedAt = createdAt
      if (kind === 'failed') refund.status = 'failed'
      else if (kind !== 'open') moveMoney(state, refund, createdAt)
      return [refund]
    })
}

/** Forgets a transaction with its payments and refunds; one that waits for its end finds it over. */
function dropTransaction(state: SandboxState, book: Book, transactionId: string): void {
  const payments = book.transactions.get(transactionId)?.payments ?? []
  for (const payment of payments) dropPayment(state, book, payment)
  book.transactions.delete(transactionId)
}

function dropPayment(state: SandboxState, book: Book, payment: SandboxPayment): void {
  for (const refund of payment.refunds) {
    if (refund.status === 'accepted') refund.status = 'failed'
    const others = book.refunds.get(refund.requestId)?.filter((one) => one !== refund) ?? []
    if (others.length === 0) book.refunds.delete(refund.requestId)
    else book.refunds.set(refund.requestId, others)
  }
  book.payments.delete(payment.id)
  state.ledger = state.ledger.filter(
    ({ paymentId, merchantCode }) => paymentId !== payment.id || merchantCode !== book.merchantCode,
  )
}
