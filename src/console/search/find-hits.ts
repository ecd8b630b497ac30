import type { Access } from '../../access/types.ts'
import { formatTransactionKey } from '../../db/transaction-key.ts'
import { toIso } from '../../platform/postgres/row-set.ts'
import { readRefunds } from '../../refunds/events.ts'
import type { RefundRecord } from '../../refunds/find.ts'
import { findObjects, type SearchHit } from '../../search.ts'
import { readTransactions } from '../../transactions/find-transactions.ts'
import type { TransactionWithPayments } from '../../transactions/types.ts'
import type { ConsoleContext } from '../context.ts'
import { toRange } from '../days.ts'
import { isFiltered, type SearchQuery } from './read-query.ts'

/** Results of a search at most. */
export const MAX_HITS = 60

/** An object that was found, with the transaction it belongs to. */
export type Hit = SearchHit & {
  of: TransactionWithPayments['transaction']
  payment?: TransactionWithPayments['payments'][number]['payment']
  refund?: RefundRecord['refund']
  /** ISO 8601: first seen, or requested. */
  at: string
  /** The whole text is one of its ids. */
  isExact: boolean
}

export type Hits = {
  shown: Hit[]
  /** Something is shown although the filters leave it out, because the text is exactly its id. */
  ignoredFilters: boolean
  /** The filters leave something out. */
  leftOut: boolean
  /** There may be more. */
  isCut: boolean
}

/**
 * Finds what a text names, with its state. Filters leave results out, but never what has exactly this id.
 * @param merchants the accounts to search
 */
export async function findHits(
  ctx: ConsoleContext & { zone: string },
  { scopes }: Pick<Access, 'scopes'>,
  merchants: readonly string[],
  query: SearchQuery & { q: string },
): Promise<Hits> {
  const withRefunds = scopes.includes('refunds:read')
  const found = await findObjects(ctx, merchants, query.q, { withRefunds, limit: MAX_HITS })
  const hits = await loadHits(ctx, found, query.q)
  const fits = (hit: Hit) => !isFiltered(query) || fitsFilters(hit, query, ctx.zone)
  const shown = hits.filter((hit) => hit.isExact || fits(hit))
  return {
    shown,
    ignoredFilters: shown.some((hit) => !fits(hit)),
    leftOut: shown.length < hits.length,
    isCut: found.length === MAX_HITS,
  }
}

async function loadHits(ctx: ConsoleContext, found: SearchHit[], text: string): Promise<Hit[]> {
  const [transactions, refunds] = await Promise.all([
    readTransactions(ctx.sql, listKeys(found)),
    loadRefunds(ctx, found),
  ])
  return found.flatMap((hit) => {
    const of = transactions.get(formatTransactionKey(hit))
    if (!of) return []
    const { payment } = of.payments.find((one) => one.payment.paymentId === hit.id) ?? {}
    const refund = refunds.find(
      (one) => one.refundId === hit.id && one.merchantCode === hit.merchantCode,
    )
    const at = refund?.requestedAt ?? payment?.firstSeenAt ?? of.transaction.firstSeenAt
    const objects = {
      of: of.transaction,
      ...(hit.type === 'payment' && payment ? { payment } : {}),
      ...(hit.type === 'refund' && refund ? { refund } : {}),
    }
    const isExact = isExactId({ ...hit, ...objects }, text)
    return [{ ...hit, ...objects, at: toIso(at), isExact }]
  })
}

/** The transactions that the objects belong to, each once. */
function listKeys(found: readonly SearchHit[]) {
  const keys = found.map(({ merchantCode, transactionId }) => ({ merchantCode, transactionId }))
  return [...new Map(keys.map((key) => [formatTransactionKey(key), key])).values()]
}

async function loadRefunds({ sql }: ConsoleContext, found: readonly SearchHit[]) {
  const refunds = found.filter(({ type }) => type === 'refund')
  const merchants = [...new Set(refunds.map(({ merchantCode }) => merchantCode))]
  const rows = await Promise.all(
    merchants.map((merchantCode) => {
      const own = refunds.filter((one) => one.merchantCode === merchantCode)
      return readRefunds(
        sql,
        merchantCode,
        own.map(({ id }) => id),
      )
    }),
  )
  return rows.flat().map(({ refund }) => refund)
}

function isExactId(hit: Pick<Hit, 'matched' | 'id' | 'of' | 'refund'>, text: string): boolean {
  switch (hit.matched) {
    case 'transactionId':
    case 'paymentId':
      return hit.id === text
    case 'refundId':
      return hit.id === text.toLowerCase() || hit.id.replaceAll('-', '') === text.toLowerCase()
    case 'orderId':
      return hit.of.orderId?.toLowerCase() === text.replace(/^#\s*/, '').toLowerCase()
    case 'merchantTxnId':
      return hit.of.merchantTxnId === text
    case 'gatewayRefundId':
      return hit.refund?.gatewayRefundId === text
    case 'gatewayReference':
      return hit.refund?.notifiedReference === text
    case 'amount':
      return false
  }
}

function fitsFilters({ of, at }: Hit, query: SearchQuery, zone: string): boolean {
  const { from, to } = toRange(zone, query)
  return (
    (query.state === undefined || of.state === query.state) &&
    (from === undefined || at >= from) &&
    (to === undefined || at < to)
  )
}
