import {
  byTransaction,
  formatTransactionKey,
  selectKeys,
  type TransactionKey,
} from '../db/transaction-key.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { type EventRow, listOrderIds } from '../events/event.ts'
import { type FeedPage, isWanted, selectEvents } from '../feed/read-feed.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Claim, isFirst, type MadeCall, type PlannedCall, type Wave } from './claim.ts'
import { filterOf } from './endpoints.ts'

/** More events than calls, because several may belong to one transaction. */
const PAGE = 32

export type Plan = {
  calls: readonly PlannedCall[]
  page: FeedPage
  removed: number
  /** Transactions of the page that have a retry, due or not: their later events wait behind it. */
  waiting: ReadonlySet<string>
  /** Retries of events that the endpoint no longer gets. */
  withheld: readonly PlannedCall[]
  hasMoreRetries: boolean
}

/**
 * Plans calls for due retries, then for events of the feed, at most one per transaction, that the owner may read now.
 * @returns undefined if nothing may be sent: the owner has lost its access, or the database may have lost commits
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
    const key = formatTransactionKey(event)
    if (isHandled(claim, event) || taken.has(key)) return []
    taken.add(key)
    return [{ ...event, attempts: 0, failingForMs: null }]
  })
  const calls = [...due, ...fresh].slice(0, limit)
  const withheld = retries.filter((retry) => !due.includes(retry))
  return { calls, page, removed, waiting, withheld, hasMoreRetries: retries.length === limit }
}

/** Whether an event after the cursor needs no call: it was accepted, waits as a retry, or is about the endpoint. */
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

async function selectWaiting(
  sql: Sql,
  endpointId: string,
  events: readonly EventRow[],
): Promise<ReadonlySet<string>> {
  const rows = await sql<TransactionKey[]>`
    select k.merchant_code as "merchantCode", k.transaction_id as "transactionId"
    from ${selectKeys(sql, events)} cross join lateral (
      select from webhook_retries as r
      where r.endpoint_id = ${endpointId} and ${sql.unsafe(byTransaction('r'))} limit 1) as r`
  return new Set(rows.map(formatTransactionKey))
}

/** Decides how far the endpoint has got. A planned call that is not in `made` was aborted and counts as not made. */
export function settleWave(
  claim: Claim,
  { page, waiting, withheld, hasMoreRetries }: Plan,
  made: readonly MadeCall[],
): Wave {
  const ended = new Set(made.map(({ event }) => event.id))
  const isDone = (event: EventRow) => ended.has(event.id) || isHandled(claim, event)
  const isWaiting = (event: EventRow) => waiting.has(formatTransactionKey(event))
  const open = page.events.findIndex((event) => !isDone(event) && !isWaiting(event))
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
    // This keeps events that the page no longer shows, as the types of the endpoint may have changed.
    ahead: [...new Set([...claim.ahead, ...ahead])].filter((id) => id > cursor),
    goesOn: open >= 0 || !page.atEnd || hasMoreRetries || parked.length > 0,
  }
}
