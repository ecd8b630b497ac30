import { randomInt } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import type { z } from 'zod'
import type { SandboxCard, seedInput } from './input.ts'
import { addTransaction, moveMoney, openRefund, showRefund, showTransaction } from './ledger.ts'
import {
  makePick,
  makeRandom,
  makeRefundId,
  makeRequestId,
  makeTransactionId,
  type PickNumber,
} from './random.ts'
import {
  findMerchant,
  type SandboxMerchant,
  type SandboxPayment,
  type SandboxRefund,
  type SandboxState,
  type SandboxTransaction,
} from './state.ts'

const FIRST_AT = Date.UTC(2026, 0, 1)
const BETWEEN_MS = 7 * 60_000
/** Above the range of `pickFirstPaymentId`. */
const FIRST_PAYMENT_ID = 2 * 10 ** 12

const METHODS = ['QR', 'ATM', 'CC']
/** The payments of a transaction by their statuses, the oldest first; one line is picked for each. */
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
 * Makes a population of transactions, refunds and cards in one account, and resets all random generators to the seed.
 * A seed always gives the same ids, amounts and times, and replaces what it made before. Open refunds settle only by
 * a control request.
 * @throws ControlError 409 if a payment id is taken, 422 if there is no such account
 */
export function seedSandbox(
  state: SandboxState,
  { seed, transactions: count, merchantCode }: z.output<typeof seedInput>,
) {
  const merchant = findMerchant(state, merchantCode)
  const pick = makePick(makeRandom(seed))
  const planned = Array.from({ length: count }, (_, index) => planTransaction(pick, index))
  removeTransactions(state, merchant, new Set(planned.map(({ transactionId }) => transactionId)))
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
    payments: statuses.map((status) => {
      const id = String(FIRST_PAYMENT_ID + pick(10 ** 12))
      return { id, amount, paymentMethod: METHODS[pick(METHODS.length)] ?? 'QR', status }
    }),
  }
}

function makeAmount(pick: PickNumber, currency: string): string {
  if (currency === 'VND') return `${1 + pick(20_000)}000`
  const decimals = pick(5) === 0 ? 4 : 2
  return `${1 + pick(500)}.${String(pick(10 ** decimals)).padStart(decimals, '0')}`
}

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

/** Removes transactions with their payments and refunds. Refunds that wait to settle end as failed. */
function removeTransactions(
  state: SandboxState,
  { merchantCode, transactions, payments, refunds }: SandboxMerchant,
  ids: ReadonlySet<string>,
): void {
  const isOf = ({ transaction }: SandboxPayment) => ids.has(transaction.transactionId)
  for (const [requestId, all] of refunds) {
    const removed = all.filter(({ payment }) => isOf(payment))
    for (const refund of removed) if (refund.status === 'accepted') refund.status = 'failed'
    const kept = all.filter((one) => !removed.includes(one))
    if (kept.length > 0) refunds.set(requestId, kept)
    else refunds.delete(requestId)
  }
  state.ledger = state.ledger.filter((moved) => {
    const payment = moved.merchantCode === merchantCode ? payments.get(moved.paymentId) : undefined
    return payment === undefined || !isOf(payment)
  })
  for (const [id, payment] of payments) if (isOf(payment)) payments.delete(id)
  for (const id of ids) transactions.delete(id)
}

/** The specification shows the first two (section 3); gateways of this family send the others too. */
const CARD_STATUSES = [
  'ACTIVED',
  'INACTIVED',
  'INACTIVE',
  'ACTIVE',
  'EXPIRED',
  'LOCKED',
  'FAILED',
] as const

const BRANDS = [
  { cardBrand: 'visa', start: '411111' },
  { cardBrand: 'mastercard', start: '555555' },
  { cardBrand: 'jcb', start: '353011' },
] as const
const HOLDERS = ['NGUYEN VAN A', 'TRAN THI B', 'LE VAN C', 'PHAM THI D']
const GROUPS = ['ADVERTISING', 'TRAVEL', 'SOFTWARE', 'OFFICE']

const CARDS_AT_START = 2 * CARD_STATUSES.length
const CARDS_IN_A_BATCH = 5
const FIRST_CARD_AT = Date.UTC(2026, 0, 1, 8)
const BETWEEN_CARDS_MS = 17 * 3_600_000

/** Adds generated cards, which are always the same for a seed. @param options `name` is part of their ids */
export function addCards(
  merchant: SandboxMerchant,
  { seed, name }: { seed: number; name: string },
): SandboxCard[] {
  const pick = makePick(makeRandom(seed))
  return Array.from({ length: CARDS_AT_START }, (_, index) => {
    const at = new Date(FIRST_CARD_AT + index * BETWEEN_CARDS_MS).toISOString()
    const card = {
      ...makeCard(merchant, at, { pick, index }),
      virtualCardRequestId: `VC-${name}-${String(index + 1).padStart(4, '0')}`,
      requestId: `BATCH-${name}-${Math.floor(index / CARDS_IN_A_BATCH) + 1}`,
    }
    merchant.cards.set(card.virtualCardRequestId, card)
    return card
  })
}

export function makeCard(
  { merchantCode, cards }: SandboxMerchant,
  at: string,
  { pick = randomInt, index = cards.size }: { pick?: PickNumber; index?: number } = {},
): SandboxCard {
  const { cardBrand, start } = BRANDS[index % BRANDS.length] ?? BRANDS[0]
  const isVnd = index % 2 === 0
  const digits = (count: number) => String(pick(10 ** count)).padStart(count, '0')
  return {
    virtualCardRequestId: `VC-${merchantCode}-${digits(9)}`,
    requestId: `BATCH-${merchantCode}-NEW`,
    status: CARD_STATUSES[index % CARD_STATUSES.length] ?? 'ACTIVED',
    cardData: {
      cardHolderName: HOLDERS[pick(HOLDERS.length)] ?? 'NGUYEN VAN A',
      cardNumber: `${start}******${digits(4)}`,
      cardExpiryDate: `${2027 + pick(5)}-${String(1 + pick(12)).padStart(2, '0')}`,
      cardBrand,
    },
    cardPolicy: {
      policyRequestId: `POLICY-${merchantCode}-${1 + (index % 3)}`,
      policyRevision: 1 + pick(4),
      cardCurrency: isVnd ? 'VND' : 'USD',
      cardLimit: new LosslessNumber(isVnd ? `${1 + pick(50)}000000` : `${100 + pick(900)}.50`),
      minTransAmount: new LosslessNumber(isVnd ? '10000' : '0.01'),
      maxTransAmount: new LosslessNumber(isVnd ? '1000000' : '99.99'),
      autoCloseCard: pick(2) === 0,
      activeOnCreate: pick(2) === 0,
      supportedMccGroup: GROUPS.slice(0, 1 + pick(GROUPS.length)),
    },
    extraInfo: pick(2) === 0 ? {} : { note: 'made by the sandbox' },
    createdAt: at,
    updatedAt: at,
    raw: {},
  }
}
