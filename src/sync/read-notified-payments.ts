import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** What a payment notification states whose hash verified and whose reading is trusted. */
export type NotifiedPayment = { code: string; amount: string | null; currency: string | null }

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
    select k.ordinality::int as at, e.code, e.amount, e.currency
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)},
      lateral (
        select code, amount, currency from (
          select code, amount, currency, verdict, hint, last_received_at, id from ipn_events as e
          where ${tx.unsafe(byKey('e', ['merchant_code', 'transaction_id'], 'k'))}
          limit ${MAX_READ}
        ) as bounded
        where verdict = 'verified' and not hint and code is not null
        order by last_received_at desc, id desc limit ${MAX_NOTIFIED}
      ) as e`
  for (const { at, ...notification } of rows) notified[at - 1]?.push(notification)
  return notified
}
