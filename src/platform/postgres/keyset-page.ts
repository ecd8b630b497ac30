import { and, desc, eq, getTableName, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'

/** The columns that a list is sorted by, newest first: an index of the table has them in this order. */
export type ListKey = { merchantCode: PgColumn; time: PgColumn; id: PgColumn }

export type PageRequest = {
  merchants: readonly string[]
  /** Further conditions on a row. */
  filter: SQL | undefined
  /** The number of rows on the page. */
  limit: number
  /** The row after which the page begins. */
  after: { time: string; id: string; merchantCode: string } | undefined
}

/**
 * Selects the rows of a table that a page of its list needs, under the table's own name, for the `with` of
 * the statement that reads them: there they take the table's place. More than `limit` of them mean that
 * there is a next page. The statement has to sort them again.
 */
export function pickNewest(
  db: Pick<PostgresJsDatabase<Record<string, unknown>>, '$with'>,
  { merchantCode, time, id }: ListKey,
  { merchants, filter, limit, after }: PageRequest,
) {
  const { table } = merchantCode
  const behind =
    after &&
    sql`(${time}, ${id}, ${merchantCode})
      < (${after.time}::timestamptz, ${after.id}, ${after.merchantCode})`
  const limitClause = writeLimit(limit)
  const newest = sql`${desc(time)}, ${desc(id)}`
  const selectPage = (ofMerchant: SQL) =>
    sql`select * from ${table} where ${and(ofMerchant, filter, behind)} order by ${newest} ${limitClause}`
  const [only, another] = merchants
  // Several accounts are read one by one, each by its own part of the index and no further than a page:
  // one scan over all of them would read and sort every row.
  const page =
    only !== undefined && another === undefined
      ? selectPage(eq(merchantCode, only))
      : sql`
        select ${table}.* from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
        cross join lateral (${selectPage(sql`${merchantCode} = account`)}) as ${table}
        order by ${newest}, ${desc(merchantCode)} ${limitClause}`
  return db.$with(getTableName(table), {}).as(page)
}

/** The number of rows read for a page: the smallest of these above the page's own number. */
const ROWS_READ = [11, 51, 101, 201]

/**
 * Writes the limit as a literal. A statement is planned once, and for a limit in a parameter the planner
 * expects a tenth of the table and reads it all (at a million rows 118 ms a page; 4 ms with a literal). Few
 * distinct limits, because every connection keeps a prepared statement for each text.
 */
function writeLimit(limit: number): SQL {
  return sql.raw(`limit ${ROWS_READ.find((rows) => rows > limit) ?? Math.trunc(limit) + 1}`)
}
