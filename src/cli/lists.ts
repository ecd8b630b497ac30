import type { z } from 'zod'
import { type Filter, type Listing, type ListingContext, readPage } from '../access/listing.ts'
import type { Page } from '../http/list.ts'
import type { Sql } from '../platform/postgres/types.ts'

export const PAGE = 200

/** Reads a page of a list, as the API does. @throws DomainError as `readPage` does */
export async function readRows<Query extends z.ZodRawShape, Row extends object>(
  ctx: ListingContext,
  listing: Listing<Query, Row>,
  filter: Filter<Query>,
  cursor: string | undefined,
): Promise<Page<Row>> {
  return await readPage(ctx, cursor, listing.idForm, (after) =>
    listing.read(ctx, filter, PAGE, after),
  )
}

/** Reads a list to its end. */
export async function* walkRows<Query extends z.ZodRawShape, Row extends object>(
  ctx: ListingContext,
  listing: Listing<Query, Row>,
  filter: Filter<Query>,
): AsyncGenerator<Row> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Page<Row> = await readRows(ctx, listing, filter, cursor)
    yield* page.data
    cursor = page.nextCursor
  }
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
