import postgres from 'postgres'
import { byKey } from '../platform/postgres/by-key.ts'
import { rowSet } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { RecutError, storeReadings } from './readings.ts'
import { storeArrivals } from './store.ts'
import type { Arrival } from './types.ts'

/** Classes of SQLSTATE: connection, read-only transaction, resources, operator intervention, system. */
const SERVER_ERROR = /^(08|25|53|57|58)/

/**
 * Stores a batch in one commit, and in another one what has a hash that is known with another reading. If a row
 * is rejected, commits each half by itself, and so on down to that
 * row. Never rejects.
 * @returns one result for each arrival, in order
 */
export async function commitArrivals(
  sql: Sql,
  batch: readonly Arrival[],
): Promise<PromiseSettledResult<void>[]> {
  try {
    const judged = await demoteRequests(sql, batch)
    const recut = await storeArrivals(sql, judged)
    if (recut.size > 0) return await commitApart(sql, judged, recut)
    return batch.map(() => STORED)
  } catch (reason) {
    if (batch.length > 1 && isRowError(reason)) {
      const middle = batch.length >> 1
      const first = await commitArrivals(sql, batch.slice(0, middle))
      return [...first, ...(await commitArrivals(sql, batch.slice(middle)))]
    }
    return batch.map(() => ({ status: 'rejected', reason }))
  }
}

const STORED = { status: 'fulfilled', value: undefined } as const

/** Commits a batch in which the notifications at these places have a hash that is known with another reading. */
async function commitApart(
  sql: Sql,
  batch: readonly Arrival[],
  recut: ReadonlySet<number>,
): Promise<PromiseSettledResult<void>[]> {
  const others = batch.filter((_, place) => !recut.has(place))
  const results = others.length > 0 ? await commitArrivals(sql, others) : []
  const readings = batch.filter((_, place) => recut.has(place))
  const kept = await storeReadings(sql, readings).then(
    (stored) => stored.map((one) => (one ? STORED : refuse(new RecutError()))),
    (error: unknown) => readings.map(() => refuse(error)),
  )
  const [nextResult, nextKept] = [results.values(), kept.values()]
  return batch.map((_, place) => {
    const { value } = recut.has(place) ? nextKept.next() : nextResult.next()
    return value ?? refuse(new Error('a notification has no result'))
  })
}

function refuse(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason }
}

/** Whether a smaller batch could succeed. An error of the server itself would hit every half alike. */
function isRowError(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !SERVER_ERROR.test(error.code)
}

/**
 * Makes hints of the notifications whose signed text is that of a request: they lead to a query, but settle, reserve
 * and name nothing. Sends a statement only if a text may be that of a REFUND request without a receiver.
 * @returns in the order of the notifications
 * @throws database errors
 */
export async function demoteRequests(
  sql: Sql,
  arrivals: readonly Arrival[],
): Promise<readonly Arrival[]> {
  if (arrivals.every(({ origin }) => origin === 'notification')) return arrivals
  const requested = await findRequested(sql, arrivals)
  return arrivals.map((arrival, place) =>
    arrival.origin === 'request' || requested.has(place) ? demote(arrival) : arrival,
  )
}

/** Without its code it is no result of a refund of ours either, whose notifications count in any form. */
function demote(arrival: Arrival): Arrival {
  const { notification } = arrival
  return {
    ...arrival,
    notification: { ...notification, code: undefined },
    published: false,
    hint: true,
  }
}

const COLUMNS = { place: 'int', merchantCode: 'text', paymentId: 'text' }

/** The places of those whose text is that of a REFUND request for a payment of the account. */
async function findRequested(sql: Sql, arrivals: readonly Arrival[]): Promise<ReadonlySet<number>> {
  const rows = arrivals.flatMap(({ origin, merchantCode }, place) =>
    typeof origin === 'object' ? [{ place, merchantCode, paymentId: origin.paymentId }] : [],
  )
  if (rows.length === 0) return new Set()
  const found = await sql<{ place: number }[]>`
    select k.place from ${rowSet(sql, 'k', COLUMNS, rows)} cross join lateral (
      select from payments as p where ${sql.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1) as p`
  return new Set(found.map(({ place }) => place))
}
