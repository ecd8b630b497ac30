import { and, desc, eq, getTableName, gte, lte, type Placeholder, type SQL, sql } from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { byKey } from './by-key.ts'
import { describeColumns, pickColumns, toSnakeCase } from './row-set.ts'

/** The columns that a list is sorted by, newest first: an index of the table has them in this order. */
export type ListKey = { merchantCode: PgColumn; time: PgColumn; id: PgColumn }

export type PageRequest = {
  merchants: readonly string[]
  /** Further conditions on a row. None may set the column of `only` to one value: then other indexes have its order. */
  filter: SQL | undefined
  /** Reads only some rows, by an index that a page of the whole list would not use. */
  only?: Selection | undefined
  /** The number of rows on the page. */
  limit: number
  /** The row after which the page begins. */
  after: { time: string; id: string; merchantCode: string } | undefined
}

/**
 * What a page selects its rows by:
 *
 * - a range of a column, both ends included: all its rows are read and sorted, so they have to be few;
 * - one value of a column whose index, newest first, goes on with the time and the id: no more rows are read than a page
 *   has;
 * - `rows`, a subquery of few rows of the table for an account, under the table's own name.
 */
export type Selection =
  | { column: PgColumn; from: string; to: string }
  | { sorted: PgColumn; value: string }
  | { rows: (account: SQL) => SQL }

/**
 * Selects the rows of a table that a page of its list needs, under the table's own name, for the `with` of
 * the statement that reads them: there they take the table's place. More than `limit` of them mean that
 * there is a next page. The statement has to sort them again.
 */
export function pickNewest(
  db: Pick<PostgresJsDatabase<Record<string, unknown>>, '$with'>,
  { merchantCode, time, id }: ListKey,
  { merchants, filter, only: selection, limit, after }: PageRequest,
) {
  const { table } = merchantCode
  const behind =
    after &&
    sql`(${time}, ${id}, ${merchantCode})
      < (${after.time}::timestamptz, ${after.id}, ${after.merchantCode})`
  const limitClause = writeLimit(limit)
  const newest = sql`${desc(time)}, ${desc(id)}`
  const selectPage = (account: SQL) => {
    const ofMerchant = eq(merchantCode, account)
    if (!selection)
      return sql`${selectWhere(table, and(ofMerchant, filter, behind))} order by ${newest} ${limitClause}`
    if ('sorted' in selection) {
      const { sorted, value } = selection
      // A range has an order, as a single value has not: no other index serves it. The row begins the scan at the page.
      const begin =
        after &&
        sql`(${sorted}, ${time}, ${id}) <= (${value}, ${after.time}::timestamptz, ${after.id})`
      const conditions = and(
        ofMerchant,
        gte(sorted, value),
        lte(sorted, value),
        begin,
        filter,
        behind,
      )
      return sql`${selectWhere(table, conditions)} order by ${desc(sorted)}, ${newest} ${limitClause}`
    }
    const rows =
      'rows' in selection
        ? sql`(${selection.rows(account)}) as ${table}`
        : selectRange(table, and(ofMerchant, filter), selection)
    const conditions = 'rows' in selection ? and(filter, behind) : behind
    return sql`${selectWhere(rows, conditions)} order by ${newest} ${limitClause}`
  }
  const [only, another] = merchants
  // Several accounts are read one by one, each by its own part of the index and no further than a page:
  // one scan over all of them would read and sort every row.
  const page =
    only !== undefined && another === undefined
      ? selectPage(sql`${only}`)
      : sql`
        select ${table}.* from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
        cross join lateral (${selectPage(sql`account`)}) as ${table}
        order by ${newest}, ${desc(merchantCode)} ${limitClause}`
  return db.$with(getTableName(table), {}).as(page)
}

/**
 * Selects the rows of a table that have one of several keys, under the table's own name, for the `with` of the
 * statement that reads them, as `pickNewest` does. The columns make a unique key, and an index has them in this
 * order.
 * @param keys a JSON array of objects with these properties
 */
export function pickByKeys<T extends PgTable, Name extends keyof T['_']['columns'] & string>(
  db: Pick<PostgresJsDatabase<Record<string, unknown>>, '$with'>,
  table: T,
  names: readonly Name[],
  keys: string | Placeholder,
) {
  const { list, definition } = describeColumns(pickColumns(table, ...names))
  return db.$with(getTableName(table), {}).as(sql`
    select found.* from (
      select ${sql.raw(list)} from json_to_recordset(${keys}::json) as k (${sql.raw(definition)})
    ) as k cross join lateral (
      select * from ${table} as t where ${sql.raw(byKey('t', names.map(toSnakeCase), 'k'))} limit 1
    ) as found`)
}

function selectWhere(rows: PgTable | SQL, conditions: SQL | undefined): SQL {
  return sql`select * from ${rows} where ${conditions ?? sql`true`}`
}

/** Reads the range in its own order, as `byKey` does, so that no other index serves it. */
function selectRange(
  table: PgTable,
  conditions: SQL | undefined,
  { column, from, to }: Extract<Selection, { column: PgColumn }>,
): SQL {
  return sql`(
    select * from ${table} where ${conditions} and ${column} >= ${from} and ${column} <= ${to}
    order by ${column} offset 0) as ${table}`
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
