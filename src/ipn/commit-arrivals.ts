import postgres from 'postgres'
import type { Sql } from '../platform/postgres/types.ts'
import { storeArrivals } from './store-arrivals.ts'
import type { Arrival } from './types.ts'

/** Classes of SQLSTATE: connection, read-only transaction, resources, operator intervention, system. */
const SERVER_ERROR = /^(08|25|53|57|58)/

/**
 * Stores a batch in one commit. If a row is rejected, commits each half by itself, and so on down to that
 * row. Never rejects.
 * @returns one result for each arrival, in order
 */
export async function commitArrivals(
  sql: Sql,
  batch: readonly Arrival[],
): Promise<PromiseSettledResult<void>[]> {
  try {
    await storeArrivals(sql, batch)
    return batch.map(() => ({ status: 'fulfilled', value: undefined }))
  } catch (reason) {
    if (batch.length > 1 && isRowError(reason)) {
      const middle = batch.length >> 1
      const first = await commitArrivals(sql, batch.slice(0, middle))
      return [...first, ...(await commitArrivals(sql, batch.slice(middle)))]
    }
    return batch.map(() => ({ status: 'rejected', reason }))
  }
}

/** Whether a smaller batch could succeed. An error of the server itself would hit every half alike. */
function isRowError(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !SERVER_ERROR.test(error.code)
}
