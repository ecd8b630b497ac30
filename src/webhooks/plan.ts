import { webhookRetries } from '../db/schema.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { type EventRow, listOrderIds } from '../events/event.ts'
import type { FeedPage } from '../feed/read-feed.ts'
import { isWanted, selectEvents } from '../feed/read-feed.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Claim, isFirst, type MadeCall, type PlannedCall, type Wave } from './claim.ts'
import { filterOf } from './endpoints.ts'

/** Several may be of one transaction. */
const PAGE = 32

export type Plan = {
  calls: readonly PlannedCall[]
  page: FeedPage
  removed: number
  /** Transactions of the page of which an event waits, in whatever state: their later events wait as well. */
  waiting: ReadonlySet<string>
  /** Retries of events that the endpoint does not get any more. */
  withheld: readonly PlannedCall[]
  hasMoreRetries: boolean
}

const keyOf = ({ merchantCode, transactionId }: Pick<EventRow, 'merchantCode' | 'transactionId'>) =>
  JSON.stringify([merchantCode, transactionId])

/**
 * Due retries, then events of the feed, one of each transaction. What the owner may read is decided here, as for `GET
 * /v1/events`.
 * @returns undefined if nothing may be sent: the owner has no access any more, or the database may have lost commits
 */
export async function planWave(sql: Sql, claim: Claim, limit: number): Promise<Plan | undefined> {
  if (!claim.owner) return undefined
  const filter = filterOf(claim.owner, claim)
  const [retries, { head: _, removed, isStopped, ...page }] = await Promise.all([
    selectRetries(sql, claim.id, limit),
    selectEvents(sql, filter, claim.cursor, PAGE),
  ])
  if (isStopped) return undefined
  const waiting = await selectWaiting(sql, claim.id, page.events)
  const due = retries.filter((retry) => isWanted(retry, filter))
  const taken = new Set(waiting)
  const fresh = page.events.flatMap((event): PlannedCall[] => {
    if (isHandled(claim, event) || taken.has(keyOf(event))) return []
    taken.add(keyOf(event))
    return [{ ...event, attempts: 0, failingForMs: null }]
  })
  return {
    ...{ calls: [...due, ...fresh].slice(0, limit), page, removed, waiting },
    withheld: retries.filter((retry) => !due.includes(retry)),
    hasMoreRetries: retries.length === limit,
  }
}

/** Whether an event behind the cursor needs nothing more: it was accepted, waits as a retry, or is about the endpoint. */
function isHandled({ id, ahead }: Claim, event: EventRow): boolean {
  return ahead.includes(event.id) || event.transactionId === id
}

async function selectRetries(sql: Sql, endpointId: string, limit: number): Promise<PlannedCall[]> {
  return await sql<PlannedCall[]>`
    select ev.id, ev.merchant_code as "merchantCode", ev.transaction_id as "transactionId", ev.type,
      ev.data::text as data, ev.at::text as at, ${sql.unsafe(EVENT_NAMES_REFUND_SQL)} as "namesRefund",
      ${sql.unsafe(listOrderIds('ev'))}, r.attempts,
      (extract(epoch from now() - r.failing_since) * 1000)::float8 as "failingForMs"
    from (
      select * from webhook_retries as r
      where r.endpoint_id = ${endpointId} and r.due_at <= now() and ${isFirst(sql)}
      order by r.due_at limit ${limit}::int
    ) as r join events as ev on ev.id = r.event_id
    order by r.due_at, ev.id`
}

const TRANSACTION = pickColumns(webhookRetries, 'merchantCode', 'transactionId')
const OF_TRANSACTION = ['merchant_code', 'transaction_id']

async function selectWaiting(
  sql: Sql,
  endpointId: string,
  events: readonly EventRow[],
): Promise<ReadonlySet<string>> {
  const rows = await sql<EventRow[]>`
    select k.merchant_code as "merchantCode", k.transaction_id as "transactionId"
    from ${rowSet(sql, 'k', TRANSACTION, events)} cross join lateral (
      select from webhook_retries as r
      where r.endpoint_id = ${endpointId} and ${sql.unsafe(byKey('r', OF_TRANSACTION, 'k'))} limit 1) as r`
  return new Set(rows.map(keyOf))
}

/** Decides where the endpoint stands after the calls that ended: an aborted one was not made. */
export function settleWave(
  claim: Claim,
  { page, waiting, withheld, hasMoreRetries }: Plan,
  made: readonly MadeCall[],
): Wave {
  const ended = new Set(made.map(({ event }) => event.id))
  const isDone = (event: EventRow) => ended.has(event.id) || isHandled(claim, event)
  const open = page.events.findIndex((event) => !isDone(event) && !waiting.has(keyOf(event)))
  const before = open < 0 ? page.events : page.events.slice(0, open)
  const after = open < 0 ? [] : page.events.slice(open)
  const parked = before.filter((event) => !isDone(event))
  const cursor = open < 0 ? page.next : (before.at(-1)?.id ?? claim.cursor)
  const ahead = after.flatMap(({ id }) => (ended.has(id) ? [id] : []))
  return {
    calls: made,
    parked,
    dropped: withheld.map(({ id }) => id),
    cursor,
    // Also those that the page does not show: the endpoint may get other types.
    ahead: [...new Set([...claim.ahead, ...ahead])].filter((id) => id > cursor),
    goesOn: open >= 0 || !page.atEnd || hasMoreRetries || parked.length > 0,
  }
}
