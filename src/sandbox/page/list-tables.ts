import { compareAmounts, subtractAmount } from '../../money.ts'
import type {
  SandboxMerchant,
  SandboxPayment,
  SandboxRefund,
  SandboxState,
  SandboxTransaction,
} from '../state.ts'
import { describeEntry, type StyledText } from './describe-entry.ts'
import type { RowAction } from './render-action.tsx'

/** A table of the start page: its newest rows, and the total number of rows. */
export type PageTable = {
  title: string
  total: number
  columns: readonly string[]
  rows: readonly (readonly PageCell[])[]
}

/** A text, or the buttons of a row. */
export type PageCell = string | StyledText | { actions: readonly RowAction[] }

const MAX_ROWS = 20

const TONES: ReadonlyMap<string, StyledText['tone']> = new Map([
  ['SUCCESS', 'good'],
  ['succeeded', 'good'],
  ['FAILED', 'bad'],
  ['failed', 'bad'],
])

/** Lists the tables of the page, newest rows first. Of cards they contain only masked members. */
export function listTables(state: SandboxState): PageTable[] {
  const merchants = [...state.merchants.values()]
  return [
    listTransactions(merchants),
    listPayments(merchants),
    listRefunds(merchants),
    listJournal(state),
    listCards(merchants),
  ]
}

function listTransactions(merchants: readonly SandboxMerchant[]): PageTable {
  const all = merchants.flatMap(({ transactions }) => [...transactions.values()])
  return {
    title: 'Transactions',
    total: all.length,
    columns: ['created', 'id', 'merchant', 'order', 'payments', ''],
    rows: takeNewest(all, (one) => one.createdAt).map((one) => [
      formatTime(one.createdAt),
      one.transactionId,
      one.merchant.merchantCode,
      one.orderId,
      String(one.payments.length),
      { actions: [{ label: 'Notify again', fields: name('notify', one.transactionId, one) }] },
    ]),
  }
}

function listPayments(merchants: readonly SandboxMerchant[]): PageTable {
  const all = merchants.flatMap(({ payments }) => [...payments.values()])
  return {
    title: 'Payments',
    total: all.length,
    columns: ['id', 'transaction', 'order', 'amount', 'refunded', 'method', 'status', ''],
    rows: takeNewest(all, ({ transaction }) => transaction.createdAt).map((one) => [
      one.id,
      one.transaction.transactionId,
      one.transaction.orderId,
      `${one.amount} ${one.transaction.currency}`,
      one.refundedAmount,
      one.paymentMethod,
      styleStatus(one.status),
      { actions: listPaymentActions(one) },
    ]),
  }
}

function listRefunds(merchants: readonly SandboxMerchant[]): PageTable {
  const all = merchants.flatMap(({ refunds }) => [...refunds.values()].flat())
  return {
    title: 'Refunds',
    total: all.length,
    columns: ['accepted', 'request id', 'payment', 'amount', 'status', ''],
    rows: takeNewest(all, (one) => one.acceptedAt).map((one) => [
      formatTime(one.acceptedAt),
      one.requestId,
      one.payment.id,
      `${one.amount} ${one.payment.transaction.currency}`,
      styleStatus(one.status),
      { actions: listRefundActions(one) },
    ]),
  }
}

function listPaymentActions({ id, status, amount, refundedAmount, transaction }: SandboxPayment) {
  const left = subtractAmount(amount, refundedAmount)
  if (status === 'SUCCESS' && compareAmounts(left, '0') > 0) {
    return [{ label: 'Refund', fields: name('refund', id, transaction), amount: left }]
  }
  if (status !== 'PROCESSING') return []
  const change = (status: string) => ({ ...name('change', id, transaction), status })
  return [
    { label: 'Succeed', fields: change('SUCCESS') },
    { label: 'Fail', fields: change('FAILED') },
  ]
}

function listRefundActions({ requestId, status, payment }: SandboxRefund): RowAction[] {
  if (status !== 'accepted') return []
  const settle = (outcome: string) => ({
    ...name('settle', requestId, payment.transaction),
    outcome,
  })
  return [
    { label: 'Settle', fields: settle('success') },
    { label: 'Fail', fields: settle('failure') },
  ]
}

/** The fields that name an action and its object. */
function name(action: string, id: string, { merchant }: Pick<SandboxTransaction, 'merchant'>) {
  return { action, id, merchantCode: merchant.merchantCode }
}

function listJournal(state: SandboxState): PageTable {
  const { entries } = state.journal
  return {
    title: 'Journal',
    total: entries.length,
    columns: ['time', 'action', 'subject', 'outcome'],
    rows: entries
      .slice(-MAX_ROWS)
      .reverse()
      .map((entry) => {
        const { action, subject, outcome } = describeEntry(state, entry)
        return [formatTime(entry.at), action, subject, outcome]
      }),
  }
}

function listCards(merchants: readonly SandboxMerchant[]): PageTable {
  const all = merchants.flatMap(({ cards }) => [...cards.values()])
  return {
    title: 'Virtual cards',
    total: all.length,
    columns: ['created', 'id', 'number', 'brand', 'limit', 'status'],
    rows: takeNewest(all, (one) => one.createdAt).map((one) => [
      formatTime(one.createdAt),
      one.virtualCardRequestId,
      one.cardData.cardNumber,
      one.cardData.cardBrand,
      `${one.cardPolicy.cardLimit} ${one.cardPolicy.cardCurrency}`,
      one.status,
    ]),
  }
}

/** Returns the newest items; of equal times the one added last comes first. */
function takeNewest<T>(all: readonly T[], readTime: (one: T) => string): T[] {
  const newestFirst = all
    .toReversed()
    .sort((a, b) => (readTime(a) === readTime(b) ? 0 : readTime(a) < readTime(b) ? 1 : -1))
  return newestFirst.slice(0, MAX_ROWS)
}

function styleStatus(text: string): StyledText {
  return { tone: TONES.get(text) ?? 'soft', text }
}

function formatTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}
