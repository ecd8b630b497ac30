import { EPOCH_TAG_SQL } from '../db/installation.ts'
import { payments, transactions } from '../db/schema.ts'
import {
  byTransaction,
  formatUnknownKey,
  formatWakeKey,
  TRANSACTION_KEY,
} from '../db/transaction-key.ts'
import { DomainError, requireOnly } from '../errors.ts'
import { REFUNDABLE_SQL } from '../payments/find-payments.ts'
import { SHOWN_COLUMNS as PAYMENT_COLUMNS, type ShownPayment } from '../payments/view.ts'
import { withEitherSignal } from '../platform/concurrency/timing.ts'
import { listAsText, listColumns, writeRowSet } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import {
  type FoundTransaction,
  SHOWN_COLUMNS,
  type ShownTransaction,
  type TransactionLookup,
  type TransactionsContext,
} from './types.ts'

/** How many lookups may share one statement. Larger batches are no faster. */
export const MAX_LOOKUPS = 100

/**
 * Finds a transaction with its payments in one round trip. Lookups that arrive while a statement runs share the next
 * one, so each sees everything that was committed before it.
 * @throws DomainError `transaction_not_found`, or `ambiguous_merchant` when several accounts have the id
 */
export async function findTransaction(
  ctx: Pick<TransactionsContext, 'db' | 'transactionLookups'>,
  merchants: readonly string[],
  transactionId: string,
): Promise<FoundTransaction> {
  const found = await findIfKnown(ctx, merchants, transactionId)
  if (!found) throw unknownTransaction(transactionId)
  return found
}

function unknownTransaction(transactionId: string): DomainError {
  return new DomainError('transaction_not_found', `No transaction ${transactionId}`)
}

async function findIfKnown(
  { db, transactionLookups }: Pick<TransactionsContext, 'db' | 'transactionLookups'>,
  merchants: readonly string[],
  transactionId: string,
): Promise<FoundTransaction | undefined> {
  const lookup = { merchants, transactionId }
  const found = await transactionLookups.add(lookup, (all) => findMany(db.lookups.sql, all))
  return found.length === 0 ? undefined : requireOnly(found, 'transaction', transactionId)
}

/**
 * An expression for the payments of a transaction, oldest first. Decimals are text, because JSON numbers would be
 * read as binary floating point.
 * @param of the row that holds the transaction's key
 */
export const selectPayments = (of: string) => `coalesce((
    select json_agg(shown) from (
      select ${listAsText(payments, 'payments', PAYMENT_COLUMNS)}, (${REFUNDABLE_SQL})::text as refundable
      from (select * from payments as p where ${byTransaction('p', of)} offset 0) as payments
      order by payments.first_seen_at, payments.payment_id) as shown), '[]')`

const FIND = `
  select k.ordinality as place, ${listColumns(transactions, 't', SHOWN_COLUMNS)}, ${selectPayments('k')} as payments,
    ${EPOCH_TAG_SQL} as epoch
  from ${writeRowSet('k', TRANSACTION_KEY, '$1')} cross join lateral (
    select * from transactions as t where ${byTransaction('t')} limit 1
  ) as t`

type Shown = ShownTransaction & { payments: ShownPayment[] }
type FoundRow = Shown & { place: number; epoch: string | null }

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
  const rows = await sql.unsafe<FoundRow[]>(FIND, [JSON.stringify(keys)], { prepare: true })
  for (const row of rows) {
    const owner = owners[row.place - 1]
    if (owner === undefined) continue
    const { payments, epoch } = row
    found[owner]?.push({ transaction: row, payments, epoch: epoch ?? '0' })
  }
  return found.map((value) => ({ status: 'fulfilled', value }))
}

/**
 * Waits until the transaction is known and satisfies `done`, for at most `ms`, or until the request or the service
 * ends. The commit that changes the transaction wakes all its readers, which share one query.
 * @returns the transaction as last read, whether it satisfies `done` or not
 * @throws DomainError as `findTransaction` does, and `unavailable` if the service stops before it is known
 */
export function waitForTransaction(
  ctx: TransactionsContext,
  { merchants, transactionId }: TransactionLookup,
  done: (found: FoundTransaction) => boolean,
  ms: number,
  signal: AbortSignal,
): Promise<FoundTransaction> {
  const until = performance.now() + ms
  return withEitherSignal([signal, ctx.lifecycle.stopping], async (end) => {
    // An order system may ask before the gateway notifies. The wake names only the id; the lookup decides who sees it.
    const first = await readUntil(ctx, { until, end }, formatUnknownKey(transactionId), {
      read: () => findIfKnown(ctx, merchants, transactionId),
      isDone: (found) => found !== undefined || ctx.lifecycle.stopping.aborted,
    })
    if (!first && ctx.lifecycle.stopping.aborted) {
      throw new DomainError('unavailable', 'The service stops before the time is over: ask again')
    }
    if (!first) throw unknownTransaction(transactionId)
    const { merchantCode } = first.transaction
    const key = formatWakeKey({ merchantCode, transactionId })
    const find = () => findTransaction(ctx, [merchantCode], transactionId)
    const read = () => ctx.transactionWaiters.shareRead(key, find)
    return await readUntil(ctx, { until, end }, key, { read, isDone: done })
  })
}

/** Reads at once and after each wake of the key, until the result is enough or the time is over. */
async function readUntil<T>(
  { transactionWaiters: waiters }: Pick<TransactionsContext, 'transactionWaiters'>,
  { until, end }: { until: number; end: AbortSignal },
  key: string,
  { read, isDone }: { read: () => Promise<T>; isDone: (found: T) => boolean },
): Promise<T> {
  for (;;) {
    const watch = waiters.watch(key)
    try {
      const found = await read()
      const left = until - performance.now()
      if (isDone(found) || left <= 0 || end.aborted) return found
      await watch.wait(left, end)
    } finally {
      watch.cancel()
    }
  }
}
