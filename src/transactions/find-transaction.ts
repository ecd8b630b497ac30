import { EPOCH_TAG_SQL } from '../db/installation.ts'
import { payments, transactions } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { REFUNDABLE_SQL } from '../payments/find-payments.ts'
import { SHOWN_COLUMNS as PAYMENT_COLUMNS, type ShownPayment } from '../payments/view.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import {
  formatRows,
  listAsText,
  listColumns,
  pickColumns,
  writeRowSet,
} from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import {
  type FoundTransaction,
  SHOWN_COLUMNS,
  type ShownTransaction,
  type TransactionLookup,
  type TransactionsContext,
} from './types.ts'

/** The most lookups that share one statement: larger batches are no faster. */
export const MAX_LOOKUPS = 100

/**
 * Finds a transaction with its payments in one round trip. Lookups that arrive while a statement runs share
 * the next one, never the one that runs: each sees everything that was committed before it.
 * @param merchants the merchant accounts the caller may read
 * @throws DomainError `transaction_not_found`, or `ambiguous_merchant` when several accounts have the id
 */
export async function findTransaction(
  ctx: Pick<TransactionsContext, 'sql' | 'transactionLookups'>,
  merchants: readonly string[],
  transactionId: string,
): Promise<FoundTransaction> {
  const found = await findIfKnown(ctx, merchants, transactionId)
  if (!found) throw unknownTransaction(transactionId)
  return found
}

/** Makes the refusal of an id that none of the caller's accounts knows. */
export function unknownTransaction(transactionId: string): DomainError {
  return new DomainError('transaction_not_found', `No transaction ${transactionId}`)
}

/**
 * Does the same, and returns undefined when no account has the id.
 * @throws DomainError `ambiguous_merchant`
 */
export async function findIfKnown(
  { sql, transactionLookups }: Pick<TransactionsContext, 'sql' | 'transactionLookups'>,
  merchants: readonly string[],
  transactionId: string,
): Promise<FoundTransaction | undefined> {
  const [first, second] = await transactionLookups.add({ merchants, transactionId }, (lookups) =>
    findMany(sql, lookups),
  )
  if (second) {
    throw new DomainError(
      'ambiguous_merchant',
      'Several merchant accounts have a transaction with this id: name one with ?merchantCode=',
    )
  }
  return first
}

const KEY = ['merchant_code', 'transaction_id']
const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')

/**
 * One row for each key that is found, with the key's place in the list. Its text never changes, and it selects
 * what is shown only. A JSON number would be read as binary floating point, so decimals are text there.
 */
const FIND = `
  select k.ordinality as place, ${listColumns(transactions, 't', SHOWN_COLUMNS)}, (
    select json_agg(shown) from (
      select ${listAsText(payments, 'payments', PAYMENT_COLUMNS)}, (${REFUNDABLE_SQL})::text as refundable
      from (select * from payments as p where ${byKey('p', KEY, 'k')} offset 0) as payments
      order by payments.first_seen_at, payments.payment_id) as shown
  ) as payments, ${EPOCH_TAG_SQL} as epoch
  from ${writeRowSet('k', KEY_COLUMNS, '$1')} cross join lateral (
    select * from transactions as t where ${byKey('t', KEY, 'k')} limit 1
  ) as t`

type FoundRow = ShownTransaction & {
  place: number
  epoch: string | null
  payments: (ShownPayment & { refundable: string })[] | null
}

async function findMany(
  sql: Sql,
  lookups: readonly TransactionLookup[],
): Promise<PromiseSettledResult<FoundTransaction[]>[]> {
  const found: FoundTransaction[][] = lookups.map(() => [])
  const owners: number[] = []
  const keys = lookups.flatMap(({ merchants, transactionId }, owner) =>
    merchants.map((merchantCode) => {
      owners.push(owner)
      return { merchantCode, transactionId }
    }),
  )
  const rows = await sql.unsafe<FoundRow[]>(FIND, [formatRows(KEY_COLUMNS, keys)], {
    prepare: true,
  })
  for (const row of rows) {
    const owner = owners[row.place - 1]
    if (owner === undefined) continue
    const listed = (row.payments ?? []).map((payment) => ({
      payment,
      refundable: payment.refundable,
    }))
    found[owner]?.push({ transaction: row, payments: listed, epoch: row.epoch ?? '0' })
  }
  return found.map((value) => ({ status: 'fulfilled', value }))
}
