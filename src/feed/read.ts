import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { EventRow } from '../events/event.ts'

/** Which events somebody reads. */
export type FeedFilter = { merchants: readonly string[]; types: readonly string[] }

/** Events in the order of the feed, and the cursor to go on from: never before anything that was passed over. */
export type FeedPage = {
  events: EventRow[]
  next: number
  /** Nothing was left behind `next` at the moment of the read. */
  atEnd: boolean
}

/** Rows one read looks at: who follows a rare type gets on, and no read takes long. */
const LOOKS_AT = 10_000

type Row = { removed: number; head: number; reach: number | null } & (EventRow | { id: null })

/**
 * The events behind a cursor, oldest first.
 * @param after undefined begins with the oldest that is kept
 * @param path where the cursor stood, for its refusal
 * @param filter undefined reads all there are, to be sifted by `sift`
 * @throws DomainError `cursor_expired` when events behind it were removed, `invalid_request` for a
 *   cursor beyond the feed's end: it was never given, and an empty answer would hide what it skips
 */
export async function readFeed(
  { sql, feedReads }: Pick<Context, 'sql' | 'feedReads'>,
  filter: FeedFilter | undefined,
  after: number | undefined,
  limit: number,
  path = 'after',
): Promise<FeedPage> {
  const [only, second] = filter?.merchants ?? []
  // By the index of the account, or by the primary key.
  const ofOne = only !== undefined && second === undefined
  const behind = sql`
    select id, merchant_code, type from events
    where id > (select start from bounds) ${ofOne ? sql`and merchant_code = ${only}` : sql``}
    order by id`
  const wanted = filter
    ? sql`where merchant_code = any(${[...filter.merchants]}) and type = any(${[...filter.types]})`
    : sql``
  const read = () => sql<Row[]>`
    with removals as materialized (
      select coalesce((select removed_up_to from event_removals), 0) as removed
    ), bounds as materialized (
      select removed, coalesce(${after ?? null}::bigint, removed) as start,
        greatest(removed, (select max(id) from events)) as head
      from removals
    ), page as materialized (
      select id from (${behind} limit ${sql.unsafe(String(LOOKS_AT))}) as looked
      ${wanted} order by id limit ${limit}::int
    )
    select removed, head, case when (select count(*) from page) < ${limit}::int then
        (select id from (${behind} offset ${sql.unsafe(String(LOOKS_AT - 1))} limit 1) as last) end as reach,
      id, merchant_code as "merchantCode", transaction_id as "transactionId", type, data::text as data,
      at::text as at
    from bounds left join (select events.* from page join events using (id)) as e on true
    order by id`
  const rows = await feedReads(read)
  const { removed = 0, head = 0, reach = null } = rows[0] ?? {}
  if (after !== undefined && after < removed) {
    const detail = `Events behind the cursor ${after} are not kept any more: read the present state, and go on from ${removed}`
    throw new DomainError('cursor_expired', detail)
  }
  if (after !== undefined && after > head) {
    throw refuseCursor(path, '; without one it begins with the oldest event')
  }
  const events = rows.flatMap(pickEvent)
  const last = events.length === limit ? events.at(-1)?.id : undefined
  const next = last ?? reach ?? head
  return { events, next, atEnd: next === head }
}

/**
 * @param path where the cursor stood
 * @param hint what to do next
 */
export function refuseCursor(path: string, hint: string): DomainError {
  const message = `is not a cursor this feed gave${hint}`
  return new DomainError('invalid_request', `${path}: ${message}`, { errors: [{ path, message }] })
}

/** The page that a filter makes of one that was read without. */
export function sift(page: FeedPage, { merchants, types }: FeedFilter, limit: number): FeedPage {
  const wanted = page.events.filter(
    ({ merchantCode, type }) => merchants.includes(merchantCode) && types.includes(type),
  )
  const events = wanted.slice(0, limit)
  const last = wanted.length > limit ? events.at(-1)?.id : undefined
  return last === undefined ? { ...page, events } : { events, next: last, atEnd: false }
}

function pickEvent(row: Row): EventRow[] {
  if (row.id === null) return []
  const { id, merchantCode, transactionId, type, data, at } = row
  return [{ id, merchantCode, transactionId, type, data, at }]
}
