import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** What a payment notification states whose hash verified. */
export type NotifiedPayment = {
  code: string | null
  amount: string | null
  currency: string | null
  orderId: string | null
  merchantTxnId: string | null
  /** Another reading of its hash, in published form as well, is the one that is trusted. */
  hint: boolean
}

/** Bounds what a commit reads when a flood of different notifications has arrived for a transaction. */
const MAX_READ = 1_000
/** Verified notifications returned for a transaction. */
const MAX_NOTIFIED = 20

const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')

/** Reads the newest verified notifications of transactions, in the order of the keys. */
export async function readNotifiedPayments(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<NotifiedPayment[][]> {
  const notified = keys.map((): NotifiedPayment[] => [])
  if (keys.length === 0) return notified
  const rows = await tx<(NotifiedPayment & { at: number })[]>`
    select k.ordinality::int as at, e.code, e.amount, e.currency, e.order_id as "orderId",
      e.merchant_txn_id as "merchantTxnId", e.hint
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)},
      lateral (
        select code, amount, currency, order_id, merchant_txn_id, hint from (
          select code, amount, currency, order_id, merchant_txn_id, verdict, hint, published, last_received_at, id
          from ipn_events as e
          where ${tx.unsafe(byKey('e', ['merchant_code', 'transaction_id'], 'k'))}
          limit ${MAX_READ}
        ) as bounded
        where verdict = 'verified' and (published or not hint)
        order by last_received_at desc, id desc limit ${MAX_NOTIFIED}
      ) as e`
  for (const { at, ...notification } of rows) notified[at - 1]?.push(notification)
  return notified
}
