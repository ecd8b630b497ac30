import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { shortenSide } from '../discrepancies/kinds.ts'
import type { PaymentList } from '../gateway/types.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'

type Unreadable = PaymentList['unreadable'][number]

/** Unreadable entries that a person has set aside, by `identifyEntry`. */
export type SetAside = ReadonlySet<string>

/** Whether an unreadable entry is set aside, with this text. */
export function isSetAside(setAside: SetAside, { id, text }: Unreadable): boolean {
  return setAside.has(identifyEntry(id ?? null, shortenSide(text)))
}

function identifyEntry(paymentId: string | null, text: string): string {
  return JSON.stringify([paymentId, text])
}

const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')

/**
 * Reads the entries of each transaction that a person has set aside, by resolving their discrepancies. The caller
 * holds the transactions' rows.
 * @returns in the order of the keys
 */
export async function readSetAside(tx: Tx, keys: readonly TransactionKey[]): Promise<SetAside[]> {
  const rows = await tx<{ place: number; paymentId: string | null; theirs: string }[]>`
    select k.ordinality::int as place, d.payment_id as "paymentId", d.theirs
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)} cross join lateral (
      select payment_id, theirs from discrepancies as d
      where d.kind = 'payment_unreadable' and d.resolved_by is not null and d.over_at is null
        and ${tx.unsafe(byKey('d', ['merchant_code', 'transaction_id'], 'k'))} offset 0
    ) as d`
  return keys.map((_, index) => {
    const own = rows.filter(({ place }) => place === index + 1)
    return new Set(own.map(({ paymentId, theirs }) => identifyEntry(paymentId, theirs)))
  })
}
