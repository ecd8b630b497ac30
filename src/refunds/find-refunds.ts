import { and, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import type { Db } from '../db/client.ts'
import type { OrderFacts } from '../db/order-facts.ts'
import { refunds } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { isUuid } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { accountHoldColumn, orderColumn, selectOfOrder } from '../payments/find-payments.ts'
import type { StoredHold } from '../payments/view.ts'
import {
  cutRead,
  EXAMINATION,
  type PageRead,
  pickByKeys,
  pickNewest,
  type Selection,
} from '../platform/postgres/list-page.ts'
import type { RefundStatus } from './types.ts'

export type RefundRecord = { refund: typeof refunds.$inferSelect; order: OrderFacts }

/** A refund as it is read by itself, with the hold of its account. */
export type FoundRefund = RefundRecord & { accountHold: StoredHold }

export type RefundFilter = {
  merchants: readonly string[]
  orderId?: string | undefined
  transactionId?: string | undefined
  paymentId?: string | undefined
  /** The name of the API key, or of the person. */
  requestedBy?: string | undefined
  /** A decimal string, compared by value. */
  amount?: string | undefined
  /** Requested at or after this time. */
  from?: string | undefined
  /** Requested before this time. */
  to?: string | undefined
  /** As shown to readers: `pending` includes `sending`. */
  status?: Exclude<RefundStatus, 'sending'> | undefined
}

/**
 * Finds a refund of one of the accounts.
 * @param merchants the accounts the caller may read
 * @param refundId unvalidated text from the request
 * @throws DomainError `refund_not_found`
 */
export async function findRefund(
  ctx: Pick<Context, 'db'>,
  merchants: readonly string[],
  refundId: string,
): Promise<FoundRefund> {
  const found = isUuid(refundId) ? await selectRefund(ctx, merchants, refundId) : undefined
  if (!found) throw new DomainError('refund_not_found', `No refund ${refundId}`)
  return found
}

async function selectRefund(
  { db }: Pick<Context, 'db'>,
  merchants: readonly string[],
  refundId: string,
): Promise<FoundRefund | undefined> {
  const keys = merchants.map((merchantCode) => ({ merchantCode, refundId }))
  const rows = pickByKeys(db, refunds, ['merchantCode', 'refundId'], JSON.stringify(keys))
  const [found] = await selectRefunds(db.with(rows)).prepare('find_refund').execute()
  return found
}

/** Lists refunds, newest first. */
export async function listRefunds(
  { db }: Pick<Context, 'db'>,
  filter: RefundFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<FoundRefund>> {
  const r = refunds
  const { merchants, status, from, to } = filter
  const shown: RefundStatus[] =
    status === 'pending' ? ['pending', 'sending'] : status ? [status] : []
  // Unfinished refunds have a partial index. A generic plan uses it only if the query repeats the index's
  // predicate.
  const mayBeFinished = status === undefined || status === 'succeeded' || status === 'failed'
  const { by, only } = chooseIndex(filter, mayBeFinished ? [] : shown)
  const newest = pickNewest(
    db,
    { merchantCode: r.merchantCode, time: r.requestedAt, id: r.refundId },
    {
      merchants,
      filter: and(
        shown.length > 0 ? inArray(r.status, shown) : undefined,
        mayBeFinished ? undefined : sql`${r.status} not in ('succeeded', 'failed')`,
        ...listConditions({ ...filter, ...(by && { [by]: undefined }) }),
      ),
      from,
      to,
      only,
      limit,
      after,
    },
  )
  const rows = await db
    .with(newest)
    .select({ ...describeColumns(), ...EXAMINATION })
    .from(r)
    .orderBy(desc(r.requestedAt), desc(r.refundId), desc(r.merchantCode))
    .prepare('list_refunds')
    .execute()
  return cutRead(rows, limit)
}

function listConditions(filter: RefundFilter): SQL[] {
  const r = refunds
  const { transactionId, paymentId, requestedBy, amount } = filter
  return [
    ...(transactionId === undefined ? [] : [eq(r.transactionId, transactionId)]),
    ...(paymentId === undefined ? [] : [eq(r.paymentId, paymentId)]),
    ...(requestedBy === undefined ? [] : [eq(r.requestedBy, requestedBy)]),
    ...(amount === undefined ? [] : [eq(r.amount, amount)]),
  ]
}

/**
 * Chooses the index that leaves the fewest rows, as far as that can be known.
 * @returns what to read by it, and the filter that it makes superfluous
 */
function chooseIndex(
  { orderId, transactionId, paymentId, requestedBy, amount }: RefundFilter,
  open: readonly RefundStatus[],
): { by?: keyof RefundFilter; only?: Selection | undefined } {
  const r = refunds
  if (orderId !== undefined) {
    return { only: { rows: (account) => selectOfOrder(r, account, orderId) } }
  }
  if (paymentId !== undefined) {
    return { by: 'paymentId', only: { column: r.paymentId, from: paymentId, to: paymentId } }
  }
  if (transactionId !== undefined) {
    const only = { column: r.transactionId, from: transactionId, to: transactionId }
    return { by: 'transactionId', only }
  }
  if (amount !== undefined) return { by: 'amount', only: { sorted: r.amount, value: amount } }
  if (requestedBy !== undefined) {
    return { by: 'requestedBy', only: { sorted: r.requestedBy, value: requestedBy } }
  }
  // `returned` is between `pending` and `sending`; the filter leaves it out.
  const [first, last = first] = open
  return first && last ? { only: { column: r.status, from: first, to: last } } : {}
}

function selectRefunds(db: Pick<Db, 'select'>) {
  return db.select(describeColumns()).from(refunds)
}

function describeColumns() {
  return {
    refund: refunds,
    order: orderColumn('refunds'),
    accountHold: accountHoldColumn('refunds'),
  }
}
