import type { Book, SandboxState } from '../state.ts'
import { describeEntry, type News } from './words.ts'

/** A table of the start page: its newest rows, and how many there are in all. */
export type PageTable = {
  title: string
  count: number
  columns: readonly string[]
  rows: readonly (readonly (string | News)[])[]
}

const SHOWN = 20

const TONES: ReadonlyMap<string, News['tone']> = new Map([
  ['SUCCESS', 'good'],
  ['succeeded', 'good'],
  ['FAILED', 'bad'],
  ['failed', 'bad'],
])

/** Everything the page lists, newest first and bounded. Of cards only what is masked. */
export function listPageTables(state: SandboxState): PageTable[] {
  const books = [...state.books.values()]
  const { entries } = state.journal
  return [
    listTransactions(books),
    listPayments(books),
    listRefunds(books),
    {
      title: 'Journal',
      count: entries.length,
      columns: ['at', 'what', 'about', 'how it ended'],
      rows: entries
        .slice(-SHOWN)
        .reverse()
        .map((entry) => {
          const { what, about, ended } = describeEntry(state, entry)
          return [showTime(entry.at), what, about, ended]
        }),
    },
    listCards(books),
  ]
}

function listTransactions(books: readonly Book[]): PageTable {
  const all = books.flatMap((book) => [...book.transactions.values()])
  return {
    title: 'Transactions',
    count: all.length,
    columns: ['made at', 'id', 'merchant', 'order', 'payments'],
    rows: takeNewest(all, (one) => one.createdAt).map((one) => [
      showTime(one.createdAt),
      one.transactionId,
      one.book.merchantCode,
      one.orderId,
      String(one.payments.length),
    ]),
  }
}

function listPayments(books: readonly Book[]): PageTable {
  const all = books.flatMap((book) => [...book.payments.values()])
  return {
    title: 'Payments',
    count: all.length,
    columns: ['id', 'transaction', 'amount', 'refunded', 'method', 'status'],
    rows: takeNewest(all, ({ transaction }) => transaction.createdAt).map((one) => [
      one.id,
      one.transaction.transactionId,
      `${one.amount} ${one.transaction.currency}`,
      one.refundedAmount,
      one.paymentMethod,
      showStatus(one.status),
    ]),
  }
}

function listRefunds(books: readonly Book[]): PageTable {
  const all = books.flatMap((book) => [...book.refunds.values()].flat())
  return {
    title: 'Refunds',
    count: all.length,
    columns: ['accepted at', 'request id', 'payment', 'amount', 'status'],
    rows: takeNewest(all, (one) => one.acceptedAt).map((one) => [
      showTime(one.acceptedAt),
      one.requestId,
      one.payment.id,
      `${one.amount} ${one.payment.transaction.currency}`,
      showStatus(one.status),
    ]),
  }
}

function listCards(books: readonly Book[]): PageTable {
  const all = books.flatMap((book) => [...book.cards.values()])
  return {
    title: 'Virtual cards',
    count: all.length,
    columns: ['made at', 'id', 'number', 'brand', 'limit', 'status'],
    rows: takeNewest(all, (one) => one.createdAt).map((one) => [
      showTime(one.createdAt),
      one.virtualCardRequestId,
      one.cardData.cardNumber,
      one.cardData.cardBrand,
      `${one.cardPolicy.cardLimit} ${one.cardPolicy.cardCurrency}`,
      one.status,
    ]),
  }
}

/** The newest ones; of the same moment the one that was made last comes first. */
function takeNewest<T>(all: readonly T[], readTime: (one: T) => string): T[] {
  const newestFirst = all
    .toReversed()
    .sort((a, b) => (readTime(a) === readTime(b) ? 0 : readTime(a) < readTime(b) ? 1 : -1))
  return newestFirst.slice(0, SHOWN)
}

function showStatus(text: string): News {
  return { tone: TONES.get(text) ?? 'soft', text }
}

function showTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}
