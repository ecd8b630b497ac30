import { z } from '@hono/zod-openapi'
import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import type { Filter, ListingContext } from '../access/listing.ts'
import type { Principal } from '../access/principal.ts'
import type { Context } from '../context.ts'
import { ORDER_COLUMNS, type OrderFacts } from '../db/order-facts.ts'
import { REFUND_STATUSES, refunds } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { AmountParameter, Id, isUuid, TimeParameter } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { accountHoldColumn, orderColumn, selectOfOrder } from '../payments/find-payments.ts'
import type { StoredHold } from '../payments/view.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import {
  cutRead,
  EXAMINATION,
  type PageRead,
  pickByKeys,
  pickNewest,
  type Selection,
} from '../platform/postgres/list-page.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import { RELEASED, type RefundStatus } from './lifecycle.ts'

export type RefundRecord = { refund: typeof refunds.$inferSelect; order: OrderFacts }

export type FoundRefund = RefundRecord & { accountHold: StoredHold }

export const RefundState = z.enum(REFUND_STATUSES).exclude(['sending'])

export const QUERY = {
  status: RefundState.optional().describe('Only refunds with this status'),
  orderId: Id.optional().describe('Only refunds of this order'),
  transactionId: Id.optional().describe('Only refunds of this transaction'),
  paymentId: Id.optional().describe('Only refunds of this payment'),
  requestedBy: Id.optional().describe('Only refunds requested with API keys of this name'),
  amount: AmountParameter,
  from: TimeParameter,
  to: TimeParameter,
}

export type RefundFilter = Omit<Filter<typeof QUERY>, 'coversAll'>

const COLUMNS = {
  refund: refunds,
  order: orderColumn('refunds'),
  accountHold: accountHoldColumn('refunds'),
}

/** @param refundId unvalidated text @throws DomainError `refund_not_found` */
export async function findRefund(
  { db }: Pick<Context, 'db'>,
  merchants: readonly string[],
  refundId: string,
): Promise<FoundRefund> {
  const keys = isUuid(refundId) ? merchants.map((merchantCode) => ({ merchantCode, refundId })) : []
  const { drizzle } = db.lookups
  const rows = pickByKeys(drizzle, refunds, ['merchantCode', 'refundId'], JSON.stringify(keys))
  const select = drizzle.with(rows).select(COLUMNS).from(refunds).prepare('find_refund')
  const [found] = await select.execute()
  if (!found) throw new DomainError('refund_not_found', `No refund ${refundId}`)
  return found
}

/** The filters by value, the most selective first, each with the column that an index has. */
const FILTERS = [
  { name: 'paymentId', column: refunds.paymentId, isSorted: false },
  { name: 'transactionId', column: refunds.transactionId, isSorted: false },
  { name: 'amount', column: refunds.amount, isSorted: true },
  { name: 'requestedBy', column: refunds.requestedBy, isSorted: true },
] as const satisfies readonly { name: keyof RefundFilter; column: object; isSorted: boolean }[]

export async function listRefunds(
  { db: { drizzle } }: Pick<ListingContext, 'db'>,
  filter: RefundFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<FoundRefund>> {
  const r = refunds
  const { merchants, orderId, status, from, to } = filter
  const shown: RefundStatus[] =
    status === 'pending' ? ['pending', 'sending'] : status ? [status] : []
  // Unfinished refunds have a partial index. A generic plan uses it only if the query repeats its predicate.
  const mayBeFinished = status === undefined || status === 'succeeded' || status === 'failed'
  const given = FILTERS.flatMap(({ name, ...of }) => {
    const value = filter[name]
    return value === undefined ? [] : [{ ...of, value }]
  })
  const [best] = orderId === undefined ? given : []
  const newest = pickNewest(
    drizzle,
    { merchantCode: r.merchantCode, time: r.requestedAt, id: r.refundId },
    {
      merchants,
      filter: and(
        shown.length > 0 ? inArray(r.status, shown) : undefined,
        mayBeFinished ? undefined : sql`${r.status} not in ('succeeded', 'failed')`,
        ...given.filter((one) => one !== best).map(({ column, value }) => eq(column, value)),
      ),
      from,
      to,
      only:
        orderId !== undefined
          ? { rows: (account) => selectOfOrder(r, account, orderId) }
          : (best ?? selectByStatus(mayBeFinished ? [] : shown)),
      limit,
      after,
    },
  )
  const rows = await drizzle
    .with(newest)
    .select({ ...COLUMNS, ...EXAMINATION })
    .from(r)
    .orderBy(desc(r.requestedAt), desc(r.refundId), desc(r.merchantCode))
    .prepare('list_refunds')
    .execute()
  return cutRead(rows, limit)
}

/** The range from `pending` to `sending` includes `returned`, which the filter leaves out. */
function selectByStatus([first, last = first]: readonly RefundStatus[]): Selection | undefined {
  return first && last
    ? { column: refunds.status, value: first, isSorted: false, to: last }
    : undefined
}

/** Statuses in which a refund waits for a person, or may have waited too long for the gateway. */
export type WaitingStatus =
  | 'awaiting_approval'
  | 'needs_review'
  | 'returned'
  | 'accepted'
  | 'unknown'

export type WaitingRefund = RefundRecord['refund'] &
  OrderFacts & {
    /** When it was last sent, or else requested. */
    waitingSince: string
    /** Who is assigned to it, or to an open discrepancy about it. */
    assignee: string | null
  }

type WaitingFilter = {
  merchants: readonly string[]
  statuses: readonly WaitingStatus[]
  /** Only those that have waited this long (ms). */
  forMs?: number
}

const ROW = listColumns(refunds, 'r')
const SINCE = 'coalesce(r.last_sent_at, r.requested_at)'
const TRANSACTION_KEY = ['merchant_code', 'transaction_id']
const OF_TRANSACTION = byKey('t', TRANSACTION_KEY, 'r')
const DISCREPANCIES = byKey('d', TRANSACTION_KEY, 'r')
/** Who takes care of the refund `r`, or else of a discrepancy of it. */
const ASSIGNEE = `coalesce((
  select assignee from refund_reviews as v where ${byKey('v', ['merchant_code', 'refund_id'], 'r')} limit 1), (
  select d.assignee from (select * from discrepancies as d where ${DISCREPANCIES} offset 0) as d
  where d.refund_id = r.refund_id and d.resolved_at is null and d.assignee is not null
  order by d.id desc limit 1))`

/** The limit is a literal in the statement, because for a parameter the planner expects many rows. */
export const WAITING_PAGE = 50

/**
 * Lists refunds that wait, longest first: at most a page and one more row. Every account and status is read from its
 * own part of the index, and no further than that. Before the first page stand the few that wait for a second word.
 */
export async function listWaitingRefunds(
  { db: { sql } }: Pick<ListingContext, 'db'>,
  { merchants, statuses, forMs = 0 }: WaitingFilter,
  after?: Position,
): Promise<WaitingRefund[]> {
  const rows = sql.unsafe(String(WAITING_PAGE + 1))
  const since = sql.unsafe(SINCE)
  // The row comparisons say where the scan of the index begins and ends.
  const begin = after
    ? sql`(r.status, ${since}) >= (one, ${after.time}::timestamptz)`
    : sql`r.status >= one`
  const behind = after
    ? sql`and (${since}, r.refund_id, r.merchant_code) > (${after.time}::timestamptz, ${after.id}::uuid, ${after.merchantCode})`
    : sql``
  const isAsked = statuses.includes('returned') && after === undefined
  const returned = isAsked ? await listReturnedOnce(sql, merchants) : []
  const waiting = await sql<WaitingRefund[]>`
    select ${sql.unsafe(ROW)}, ${sql.unsafe(ORDER_COLUMNS)}, ${since}::text as "waitingSince",
      ${sql.unsafe(ASSIGNEE)} as assignee
    from (
      select r.* from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
      cross join json_array_elements_text(${JSON.stringify(statuses)}::json) as one
      cross join lateral (
        select * from refunds as r
        where r.merchant_code = account
          and r.status in ('awaiting_approval', 'needs_review', 'accepted', 'unknown')
          and ${begin} and (r.status, ${since}) <= (one, now() - ${forMs}::float8 * interval '1 millisecond')
          ${behind}
        order by r.status, ${since}, r.refund_id limit ${rows}
      ) as r
      order by ${since}, r.refund_id, r.merchant_code limit ${rows}
    ) as r left join lateral (
      select * from transactions as t where ${sql.unsafe(OF_TRANSACTION)} limit 1) as t on true
    order by ${since}, r.refund_id, r.merchant_code`
  return [...returned, ...waiting]
}

/** Fewer than a page, so that a page ends with a refund that the next one goes on after. */
const MAX_RETURNED = 20

/** Lists refunds of which one person said that they came back, and nothing has confirmed it yet, longest first. */
async function listReturnedOnce(
  sql: ListingContext['db']['sql'],
  merchants: readonly string[],
): Promise<WaitingRefund[]> {
  const rows = sql.unsafe(String(MAX_RETURNED))
  // A generic plan uses the index of those that are not released only if the query repeats its predicate.
  const released = sql.unsafe(String(RELEASED))
  return await sql<WaitingRefund[]>`
    select ${sql.unsafe(ROW)}, ${sql.unsafe(ORDER_COLUMNS)}, r.resolved_at::text as "waitingSince",
      ${sql.unsafe(ASSIGNEE)} as assignee
    from (
      select r.* from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
      cross join lateral (
        select * from refunds as r
        where r.merchant_code = account and r.status = 'returned' and r.return_sightings < ${released}
        order by r.resolved_at, r.refund_id limit ${rows}
      ) as r
      order by r.resolved_at, r.refund_id, r.merchant_code limit ${rows}
    ) as r left join lateral (
      select * from transactions as t where ${sql.unsafe(OF_TRANSACTION)} limit 1) as t on true
    order by r.resolved_at, r.refund_id, r.merchant_code`
}

export function isRequestedBy(
  who: Principal,
  { requestedPrincipal }: Pick<RefundRecord['refund'], 'requestedPrincipal'>,
): boolean {
  return requestedPrincipal === who.principal
}
