import { and, desc, eq, gte, lt, type SQL, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import type { Db, Tx } from '../db/client.ts'
import { listColumns } from '../db/columns.ts'
import { pickNewest } from '../db/newest.ts'
import { payments, transactions } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import type { Position } from '../http/page.ts'
import type { TransactionKey } from '../payments/apply.ts'
import { type PaymentRow, refundable } from '../payments/find.ts'
import { REFUNDABLE_SQL } from '../payments/refundable.ts'

export type TransactionRow = typeof transactions.$inferSelect
export type TransactionWithPayments = {
  transaction: TransactionRow
  payments: { payment: PaymentRow; refundable: string }[]
}

export type TransactionFilter = {
  merchants: readonly string[]
  state?: TransactionRow['state'] | undefined
  orderId?: string | undefined
  /** First seen from here on. */
  from?: string | undefined
  /** First seen before this. */
  to?: string | undefined
}

/** What is looked for: a transaction's id, and the accounts the asker may see. */
export type Wanted = { merchants: readonly string[]; transactionId: string }

/** A hundred look-ups at once are as many as pay. */
export const MAX_SHARED = 100

/**
 * A transaction with its payments, in one round trip, which look-ups that come while another is on its
 * way share.
 * @param merchants the accounts the asker may see
 * @throws DomainError `transaction_not_found`, or `ambiguous_merchant` when several accounts have the id
 */
export async function findTransaction(
  ctx: Context,
  merchants: readonly string[],
  transactionId: string,
): Promise<TransactionWithPayments> {
  const [first, second] = await ctx.lookUps.transactions.add(
    { merchants, transactionId },
    (wanted) => findMany(ctx, wanted),
  )
  if (!first) throw new DomainError('transaction_not_found', `No transaction ${transactionId}`)
  if (second) {
    throw new DomainError(
      'ambiguous_merchant',
      'Several merchant accounts have a transaction of this id: name one with ?merchantCode=',
    )
  }
  return first
}

async function findMany(
  ctx: Context,
  wanted: readonly Wanted[],
): Promise<PromiseSettledResult<TransactionWithPayments[]>[]> {
  const pairs = wanted.flatMap(({ merchants, transactionId }) =>
    merchants.map((merchantCode) => ({ merchantCode, transactionId })),
  )
  const rows = await prepareLookUp(ctx.db).execute({
    codes: pairs.map(({ merchantCode }) => merchantCode),
    ids: pairs.map(({ transactionId }) => transactionId),
  })
  const byKey = new Map(
    groupPayments(rows).map((found) => [writeKey(found.transaction), found] as const),
  )
  return wanted.map(({ merchants, transactionId }) => ({
    status: 'fulfilled',
    value: merchants.flatMap(
      (merchantCode) => byKey.get(writeKey({ merchantCode, transactionId })) ?? [],
    ),
  }))
}

export function writeKey({ merchantCode, transactionId }: TransactionKey): string {
  return `${merchantCode} ${transactionId}`
}

const COLUMNS = listColumns(transactions, 'transactions')
const PAYMENT_COLUMNS = listColumns(payments, 'payments')

/** Transactions as the unit of work has them, by `writeKey`. For none nothing is asked. */
export async function readTransactions(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<Map<string, TransactionWithPayments>> {
  if (keys.length === 0) return new Map()
  const among = tx`where (merchant_code, transaction_id) in (select * from unnest(
    ${keys.map((key) => key.merchantCode)}::text[], ${keys.map((key) => key.transactionId)}::text[]))`
  // Sent together, run one after the other.
  const [rows, paid] = await Promise.all([
    tx<TransactionRow[]>`select ${tx.unsafe(COLUMNS)} from transactions ${among}`,
    tx<(PaymentRow & { refundable: string })[]>`
      select ${tx.unsafe(PAYMENT_COLUMNS)}, ${tx.unsafe(REFUNDABLE_SQL)} as refundable
      from payments ${among} order by first_seen_at, payment_id`,
  ])
  const found = new Map(
    rows.map((transaction): [string, TransactionWithPayments] => [
      writeKey(transaction),
      { transaction, payments: [] },
    ]),
  )
  for (const { refundable: left, ...payment } of paid) {
    found.get(writeKey(payment))?.payments.push({ payment, refundable: left })
  }
  return found
}

type LookUp = ReturnType<typeof buildLookUp>
const lookUps = new WeakMap<Db, LookUp>()

/** The statement is built once for a pool: building it costs more than all else in a read. */
function prepareLookUp(db: Db): LookUp {
  const known = lookUps.get(db) ?? buildLookUp(db)
  lookUps.set(db, known)
  return known
}

function buildLookUp(db: Db) {
  const { merchantCode, transactionId } = transactions
  const [codes, ids] = [sql.placeholder('codes'), sql.placeholder('ids')]
  const where = sql`(${merchantCode}, ${transactionId}) in (select * from unnest(${codes}::text[], ${ids}::text[]))`
  return selectWithPayments(db, where).prepare('find_transactions')
}

/** Transactions with their payments, newest first; more than `limit` of them say that there is a next page. */
export async function listTransactions(
  ctx: Context,
  filter: TransactionFilter,
  limit: number,
  after: Position | undefined,
): Promise<TransactionWithPayments[]> {
  const t = transactions
  const { merchants, state, orderId, from, to } = filter
  const newest = pickNewest(
    ctx.db,
    { merchantCode: t.merchantCode, time: t.firstSeenAt, id: t.transactionId },
    {
      merchants,
      filter: and(
        state && eq(t.state, state),
        orderId === undefined ? undefined : eq(t.orderId, orderId),
        from === undefined ? undefined : gte(t.firstSeenAt, from),
        to === undefined ? undefined : lt(t.firstSeenAt, to),
      ),
      limit,
      after,
    },
  )
  const rows = await selectWithPayments(ctx.db.with(newest)).prepare('list_transactions').execute()
  return groupPayments(rows)
}

function selectWithPayments(db: Pick<Db, 'select'>, where?: SQL) {
  const t = transactions
  return db
    .select({ transaction: t, payment: payments, refundable })
    .from(t)
    .leftJoin(
      payments,
      and(eq(payments.merchantCode, t.merchantCode), eq(payments.transactionId, t.transactionId)),
    )
    .where(where)
    .orderBy(
      desc(t.firstSeenAt),
      desc(t.transactionId),
      desc(t.merchantCode),
      payments.firstSeenAt,
      payments.paymentId,
    )
}

/** Joined rows come sorted by transaction. */
function groupPayments(
  rows: readonly {
    transaction: TransactionRow
    payment: PaymentRow | null
    refundable: string
  }[],
): TransactionWithPayments[] {
  const grouped: TransactionWithPayments[] = []
  for (const { transaction, payment, refundable } of rows) {
    const last = grouped.at(-1)
    const same =
      last?.transaction.transactionId === transaction.transactionId &&
      last.transaction.merchantCode === transaction.merchantCode
    const entry = same ? last : { transaction, payments: [] }
    if (!same) grouped.push(entry)
    if (payment) entry.payments.push({ payment, refundable })
  }
  return grouped
}
