import { narrowMerchants } from '../access/authenticate.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import { MAY_SEND_SQL } from '../db/installation.ts'
import type { Reads } from '../db/reads.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { DomainError } from '../errors.ts'
import {
  EVENT_TYPES,
  EVENTS,
  type EventRow,
  type EventType,
  listOrderIds,
} from '../events/event.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { refuseCursor } from './view.ts'

export type FeedFilter = {
  /** Undefined stands for every account and for events of no account. */
  merchants: readonly string[] | undefined
  types: readonly string[]
  withRefunds: boolean
}

export type FeedPage = {
  events: EventRow[]
  /** The cursor to continue from, after every event that the filter skipped. */
  next: number
  atEnd: boolean
}

export type FeedReader = {
  db: { reads: Reads }
  feedWaiters: Waiters<FeedPage>
}

/** Returns a filter for the requested types, or for all that a key may read. @throws DomainError `scope_missing` */
export function filterByScope(
  access: Access,
  asked: { types?: readonly EventType[] | undefined; merchantCode?: string | undefined },
): FeedFilter {
  const merchants = access.coversAll
    ? nameAny(asked.merchantCode)
    : narrowMerchants(access, asked.merchantCode)
  const isReadable = (type: EventType) => access.scopes.includes(EVENTS[type].scope)
  const missing = asked.types?.find((type) => !isReadable(type))
  if (missing) {
    const detail = `This key has no scope ${EVENTS[missing].scope}, which ${missing} requires`
    throw new DomainError('scope_missing', detail)
  }
  const types = asked.types ?? EVENT_TYPES.filter(isReadable)
  const withRefunds = access.scopes.includes('refunds:read')
  if (withRefunds) access.required.add('refunds:read')
  for (const type of types) access.required.add(EVENTS[type].scope)
  return { merchants, types, withRefunds }
}

/** A key for all accounts may name one that this process does not know: another may have more of them. */
function nameAny(merchantCode: string | undefined): string[] | undefined {
  if (merchantCode === undefined) return undefined
  return merchantCode === EVERY_MERCHANT || merchantCode.includes('\0') ? [] : [merchantCode]
}

export function isWanted(event: EventRow, { merchants, types, withRefunds }: FeedFilter): boolean {
  return (
    (merchants?.includes(event.merchantCode) ?? true) &&
    types.includes(event.type) &&
    (withRefunds || !event.namesRefund)
  )
}

function filterPage(page: FeedPage, filter: FeedFilter, limit: number): FeedPage {
  const wanted = page.events.filter((event) => isWanted(event, filter))
  const events = wanted.slice(0, limit)
  const last = wanted.length > limit ? events.at(-1)?.id : undefined
  return last === undefined ? { ...page, events } : { events, next: last, atEnd: false }
}

/** Rows that a read scans at most. The cursor moves past them even if the filter wants none. */
const MAX_SCANNED = 10_000

/** The name under which reads are queued that several readers share. */
const HOLDER = 'feed'

export async function readEnd({ db: { reads } }: Pick<FeedReader, 'db'>): Promise<number> {
  const { head } = await reads.run(HOLDER, ({ sql }) => selectEvents(sql, undefined, undefined, 0))
  return head
}

/** An event, or none on a page without events, each with what the read found of the whole feed. */
type Row = (EventRow | { id: null }) & {
  /** The last position up to which events were removed: by retention, or by the new epoch after a restore. */
  removed: number
  /** The end of the feed. */
  head: number
  /** If the filter left out so much that the page is not full: the last position that was scanned. */
  reach: number | null
  /** Nothing is published, because the database may have lost commits. */
  isStopped: boolean
}

/**
 * Reads the events after a cursor, oldest first. Without a cursor it begins with the oldest event that is kept.
 * @param path the request field with the cursor, for the problem
 * @throws DomainError `cursor_expired` if events after the cursor were deleted, or it is from before a restore;
 *   `invalid_request` if it is beyond the end: it was never issued, and an empty page would hide the events it skips
 */
export async function readFeed(
  { db: { reads } }: Pick<FeedReader, 'db'>,
  filter: FeedFilter | undefined,
  after: number | undefined,
  limit: number,
  path = 'after',
): Promise<FeedPage> {
  // Readers of each account queue by themselves: one that searches far for a rare type delays only its own.
  const holder = filter ? `${HOLDER} ${filter.merchants?.join() ?? EVERY_MERCHANT}` : HOLDER
  const { removed, head, isStopped, ...page } = await reads.run(holder, ({ sql }) =>
    selectEvents(sql, filter, after, limit),
  )
  if (after !== undefined && after < removed) {
    const detail = `Events after the cursor ${after} were deleted, or lost when the database was restored: read the current state, then continue from ${removed}`
    throw new DomainError('cursor_expired', detail)
  }
  if (after !== undefined && after > head) {
    // The cursor may be from before a restore. It is answered 410 once an operator has confirmed the restore.
    if (isStopped) {
      throw new DomainError('unavailable', 'The feed is stopped after a restore of the database')
    }
    throw refuseCursor(path, '; leave it out to begin with the oldest event')
  }
  return page
}

/** Reads as `readFeed` does, whatever was deleted after the cursor. */
export async function selectEvents(
  sql: Sql,
  filter: FeedFilter | undefined,
  after: number | undefined,
  limit: number,
): Promise<FeedPage & Pick<Row, 'removed' | 'head' | 'isStopped'>> {
  const [only, second] = filter?.merchants ?? []
  // One account is read by its index, several by the primary key.
  const ofOne = only !== undefined && second === undefined
  const behind = sql`
    select id, merchant_code, type, data from events
    where id > (select start from bounds) ${ofOne ? sql`and merchant_code = ${only}` : sql``}
    order by id`
  const namesRefund = sql.unsafe(EVENT_NAMES_REFUND_SQL)
  const wanted = filter
    ? sql`where ${filter.merchants ? sql`merchant_code = any(${[...filter.merchants]})` : sql`true`}
        and type = any(${[...filter.types]})
        ${filter.withRefunds ? sql`` : sql`and not ${namesRefund}`}`
    : sql``
  const rows = await sql<Row[]>`
    with removals as materialized (
      select coalesce((select removed_up_to from event_removals), 0) as removed
    ), bounds as materialized (
      select removed, coalesce(${after ?? null}::bigint, removed) as start,
        greatest(removed, (select max(id) from events)) as head
      from removals
    ), page as materialized (
      select id from (${behind} limit ${sql.unsafe(String(MAX_SCANNED))}) as looked
      ${wanted} order by id limit ${limit}::int
    )
    select removed, head, not ${sql.unsafe(MAY_SEND_SQL)} as "isStopped",
      case when (select count(*) from page) < ${limit}::int then
        (select id from (${behind} offset ${sql.unsafe(String(MAX_SCANNED - 1))} limit 1) as last) end as reach,
      id, merchant_code as "merchantCode", transaction_id as "transactionId", type, data::text as data,
      at::text as at, ${namesRefund} as "namesRefund", ${sql.unsafe(listOrderIds('e'))}
    from bounds left join (select events.* from page join events using (id)) as e on true
    order by id`
  const [first] = rows
  if (!first) throw new Error('the database did not say where the feed begins and ends')
  const { removed, head, reach, isStopped } = first
  const events = rows.filter((row) => row.id !== null)
  const last = events.length === limit ? events.at(-1)?.id : undefined
  const next = last ?? reach ?? head
  return { events, next, atEnd: next === head, removed, head, isStopped }
}

export type FeedQuery = { filter: FeedFilter; after: number | undefined; limit: number }

/** Reads events, and waits for some for up to `ms` or until `signal` aborts. @throws DomainError as `readFeed` does */
export async function longPoll(
  ctx: FeedReader,
  query: FeedQuery,
  ms: number,
  signal: AbortSignal,
): Promise<FeedPage> {
  const page = await readFeed(ctx, query.filter, query.after, query.limit)
  if (page.events.length > 0 || ms <= 0) return page
  return await readNext(ctx, query, page, ms, signal)
}

const SHARED_LIMIT = 200

/**
 * Waits for the events after a page. At the end of the feed this costs no statement, and new events are read once for
 * all readers with the same cursor, whatever their filters.
 */
export async function readNext(
  ctx: FeedReader,
  { filter, limit }: FeedQuery,
  last: FeedPage,
  ms: number,
  signal: AbortSignal,
): Promise<FeedPage> {
  const until = performance.now() + ms
  for (let page = last; ; ) {
    const { next, atEnd } = page
    const key = String(next)
    const watch = ctx.feedWaiters.watch(key)
    try {
      const readShared = () => readFeed(ctx, undefined, next, SHARED_LIMIT)
      page = atEnd
        ? filterPage(await ctx.feedWaiters.shareRead(key, readShared), filter, limit)
        : await readFeed(ctx, filter, next, limit)
      const left = until - performance.now()
      if (page.events.length > 0 || left <= 0 || signal.aborted) return page
      if (page.next === next) await watch.wait(left, signal)
    } finally {
      watch.cancel()
    }
  }
}
