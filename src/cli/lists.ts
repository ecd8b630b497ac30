import type { Reader } from '../access/listing.ts'
import type { Sql } from '../platform/postgres/types.ts'

export const PAGE = 200

/** Reads the lists of these accounts; what belongs to none is only in those of all. */
export const readerOf = (merchants: readonly string[], coversAll = false): Reader => {
  return { merchants, coversAll, chainId: 'cli' }
}

/** How late a row may be recorded: no commit takes longer. */
const LATE = '1 hour'

/**
 * Finds the id behind which all rows of a time and later are, in a table whose ids grow with the time: no index has the
 * time of all accounts.
 */
export async function findIdBefore(
  sql: Sql,
  [table, time]: ['events', 'at'] | ['ipn_events', 'first_received_at'],
  from: string | undefined,
): Promise<number> {
  const [ends] = await sql<{ low: number; high: number }[]>`
    select coalesce(min(id), 1) - 1 as low, coalesce(max(id), 0) as high from ${sql(table)}`
  let { low, high } = ends ?? { low: 0, high: 0 }
  while (from !== undefined && high - low > PAGE) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await sql<{ isEarly: boolean }[]>`
      select ${sql(time)} < ${from}::timestamptz - ${LATE}::interval as "isEarly"
      from ${sql(table)} where id > ${middle} order by id limit 1`
    if (row?.isEarly) low = middle
    else high = middle
  }
  return low
}
