import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { type NewDiscrepancy, shortenSide } from '../discrepancies/kinds.ts'
import { compareAmounts, isPositive } from '../money.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { ClaimedRow } from './types.ts'

/** What a payment notification in documented form states. */
export type NotifiedPayment = {
  id: number
  isVerified: boolean
  code: string | null
  amount: string | null
  currency: string | null
  orderId: string | null
  merchantTxnId: string | null
  /** Another reading of its text, in documented form as well, is the one that is trusted. */
  isOther: boolean
}

/** Bounds what a commit reads when a flood of different notifications has arrived for a transaction. */
const MAX_READ = 1_000
/** Notifications returned for a transaction. */
const MAX_NOTIFIED = 20

const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')

/** Reads the newest notifications of transactions, the verified ones first, in the order of the keys. */
export async function readNotifiedPayments(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<NotifiedPayment[][]> {
  const notified = keys.map((): NotifiedPayment[] => [])
  if (keys.length === 0) return notified
  const rows = await tx<(NotifiedPayment & { at: number })[]>`
    select k.ordinality::int as at, e.code, e.amount, e.currency, e.order_id as "orderId",
      e.merchant_txn_id as "merchantTxnId", e.reading > 1 as "isOther",
      e.id, e.verdict = 'verified' as "isVerified"
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)},
      lateral (
        select code, amount, currency, order_id, merchant_txn_id, reading, id, verdict from (
          select code, amount, currency, order_id, merchant_txn_id, verdict, reading, documented, last_received_at, id
          from ipn_events as e
          where ${tx.unsafe(byKey('e', ['merchant_code', 'transaction_id'], 'k'))}
          limit ${MAX_READ}
        ) as bounded
        where documented
        order by verdict = 'verified' desc, last_received_at desc, id desc limit ${MAX_NOTIFIED}
      ) as e`
  for (const { at, ...notification } of rows) notified[at - 1]?.push(notification)
  return notified
}

/** What is shown of a transaction's order, and what its verified notifications name. */
type NotifiedOrder = {
  row: Pick<ClaimedRow, 'orderId' | 'merchantTxnId' | 'currency' | 'expectedAmount'>
  notified: readonly NotifiedPayment[]
}

/**
 * Verified notifications that name another order than the one shown. A reading of the same hash that is not trusted
 * counts as well, if it is in documented form: which of the two the gateway sent is not known.
 */
export function findOrderConflicts(
  key: TransactionKey,
  { row, notified }: NotifiedOrder,
): NewDiscrepancy[] {
  return notified.flatMap((one): NewDiscrepancy[] => {
    const members = [
      { name: 'order id', shown: row.orderId, named: one.orderId },
      { name: 'merchant transaction id', shown: row.merchantTxnId, named: one.merchantTxnId },
      { name: 'currency', shown: row.currency, named: one.currency },
    ]
    const differing: { name: string; shown: string | null; named: string | null }[] =
      members.filter(({ shown, named }) => shown !== null && named !== null && shown !== named)
    if (isOtherAmount(row.expectedAmount, one.amount)) {
      differing.push({ name: 'amount', shown: row.expectedAmount, named: one.amount })
    }
    if (differing.length === 0) return []
    const ours = differing.map(({ name, shown }) => `${name} ${shown}`).join(', ')
    const theirs = differing.map(({ name, named }) => `${name} ${named}`).join(', ')
    return [
      { ...key, kind: 'order_conflict', ours: shortenSide(ours), theirs: shortenSide(theirs) },
    ]
  })
}

/** A gateway that waits for a payment may notify zero: that is no amount of an order. */
function isOtherAmount(shown: string | null, named: string | null): boolean {
  if (shown === null || named === null || !isPositive(named)) return false
  return compareAmounts(shown, named) !== 0
}

/** The amounts of a transaction are in one currency: a second one makes it doubtful what they are worth. */
export function findOtherCurrencies(
  key: TransactionKey,
  { row: { currency: shown }, notified }: NotifiedOrder,
): NewDiscrepancy[] {
  const others = new Set(
    notified.flatMap(({ currency, isOther }) => (isOther ? [] : (currency ?? []))),
  )
  return [...others]
    .filter((currency) => shown !== null && currency !== shown)
    .map((currency) => ({
      ...key,
      kind: 'currency_changed',
      ours: `currency ${shown}`,
      theirs: `currency ${currency}`,
    }))
}
