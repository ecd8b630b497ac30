import { and, desc, eq, getTableName, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { Db } from './client.ts'

/** What a list is sorted by, newest first: an index of the table has these columns in this order. */
export type ListKey = { merchantCode: PgColumn; time: PgColumn; id: PgColumn }

export type PageWanted = {
  merchants: readonly string[]
  /** What else a row has to be. */
  filter: SQL | undefined
  /** How many rows the page shows. */
  limit: number
  /** The row behind which the page begins. */
  after: { time: string; id: string; merchantCode: string } | undefined
}

/**
 * The rows of a table that a page of its list needs, under the table's own name, for the `with` of the
 * statement that reads them: there they stand in the table's place. More than `limit` of them say that
 * there is a next page. The statement has to sort them once more.
 */
export function pickNewest(
  db: Db,
  { merchantCode, time, id }: ListKey,
  { merchants, filter, limit, after }: PageWanted,
) {
  const { table } = merchantCode
  const behind =
    after &&
    sql`(${time}, ${id}, ${merchantCode})
      < (${after.time}::timestamptz, ${after.id}, ${after.merchantCode})`
  const most = writeLimit(limit)
  const newest = sql`${desc(time)}, ${desc(id)}`
  const readAccount = (whose: SQL) =>
    sql`select * from ${table} where ${and(whose, filter, behind)} order by ${newest} ${most}`
  const [only, another] = merchants
  // Each of several accounts is read by its own part of the index, and no further than a page goes: asked
  // for at once, every row of all of them would be read and sorted.
  const page =
    only !== undefined && another === undefined
      ? readAccount(eq(merchantCode, only))
      : sql`
        select ${table}.* from unnest(${sql.param([...merchants])}::text[]) as account
        cross join lateral (${readAccount(sql`${merchantCode} = account`)}) as ${table}
        order by ${newest}, ${desc(merchantCode)} ${most}`
  return db.$with(getTableName(table), {}).as(page)
}

/** How many rows are read for a page, at least one more than it shows. */
const ROWS_READ = [11, 51, 101, 201]

/**
 * A limit written out: plans are made once for a statement, and of a limit that is a parameter the planner
 * expects a tenth of the table, and reads it all (118 ms a page at a million rows, 4 ms so). In few
 * steps, because every connection keeps a statement for each text.
 */
function writeLimit(limit: number): SQL {
  return sql.raw(`limit ${ROWS_READ.find((rows) => rows > limit) ?? Math.trunc(limit) + 1}`)
}
