import postgres from 'postgres'
import type { Sql } from '../platform/postgres/types.ts'
import { demoteRequests } from './demote-requests.ts'
import { storeArrivals } from './store-arrivals.ts'
import { RecutError, storeReadings } from './store-readings.ts'
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
