import {
  and,
  desc,
  eq,
  getTableName,
  gte,
  lt,
  lte,
  type Placeholder,
  type SQL,
  sql,
} from 'drizzle-orm'
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { byKey } from './by-key.ts'
import { describeColumns, pickColumns, toSnakeCase } from './row-set.ts'

/** The columns that a list is sorted by, newest first. The table has an index with them in this order. */
type ListKey = { merchantCode: PgColumn; time: PgColumn; id: PgColumn }

type PageRequest = {
  merchants: readonly string[]
  /** More conditions on a row. None may fix the column of `only`, because other indexes would then have its order. */
  filter: SQL | undefined
  from?: string | undefined // Inclusive.
  to?: string | undefined // Exclusive.
  /** The maximum number of rows to compare with the filter, in case few match it. Default `EXAMINED`. */
  examined?: number | undefined
  /** Reads only some rows, by an index that a page of the whole list would not use. */
  only?: Selection | undefined
  limit: number
  after: { time: string; id: string; merchantCode: string } | undefined
}

/**
 * What a page selects its rows by:
 *
 * - one value of a column whose index, newest first, goes on with the time and the id (`isSorted`);
 * - a value of any other column, or a range of it up to `to`: all its rows are read and sorted, so they have to be few;
 * - `rows`, a subquery of few rows of the table for an account, under the table's own name.
 */
export type Selection =
  | { column: PgColumn; value: string; isSorted: true }
  | { column: PgColumn; value: string; isSorted: false; to?: string }
  | { rows: (account: SQL) => SQL }

/**
 * Selects the rows for a page of a list. They take the table's place in the `with` of the statement that reads them.
 * An index returns them in the list's order until the page is full or `examined` rows were compared with the filter.
 * The statement must sort the rows again, select their `EXAMINATION`, and pass both to `cutRead`.
 */
export function pickNewest(
  drizzle: Pick<PostgresJsDatabase<Record<string, unknown>>, '$with'>,
  key: ListKey,
  request: PageRequest,
) {
  const { merchantCode, time, id } = key
  const { merchants, limit } = request
  const { table } = merchantCode
  const [only, another] = merchants
  // Several accounts are read one by one, up to a page each: one scan over all would read and sort every row.
  const page =
    only !== undefined && another === undefined
      ? selectPage(key, request, sql`${only}`)
      : sql`
        select ${table}.* from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
        cross join lateral (${selectPage(key, request, sql`account`)}) as ${table}
        order by ${desc(time)}, ${desc(id)}, ${desc(merchantCode)} ${writeLimit(limit)}`
  return drizzle.$with(getTableName(table), {}).as(page)
}

function selectPage(key: ListKey, request: PageRequest, account: SQL): SQL {
  const { merchantCode, time, id } = key
  const { table } = merchantCode
  const { filter, only } = request
  const ofMerchant = eq(merchantCode, account)
  const newest = sql`${desc(time)}, ${desc(id)}`
  if (!only || ('column' in only && only.isSorted)) {
    const conditions = and(ofMerchant, ...listBounds(key, request, only))
    const order = only ? sql`${desc(only.column)}, ${newest}` : newest
    return examine(table, conditions, request, order)
  }
  // A partial index serves the column only if its predicate is next to it.
  const [rows, rest] =
    'column' in only
      ? [selectFew(and(ofMerchant, filter), only.column, only.value, only.to), undefined]
      : [only.rows(account), filter]
  return sql`
    select *, true as fits, false as stops from (${rows}) as ${table}
    where ${and(rest, ...listBounds(key, request)) ?? sql`true`}
    order by ${newest} ${writeLimit(request.limit)}`
}

/** Compares rows with the filter. The window function numbers them before they are filtered, and keeps their order. */
function examine(
  table: PgTable,
  conditions: SQL | undefined,
  request: PageRequest,
  order: SQL,
): SQL {
  const { filter } = request
  const limit = writeLimit(request.limit)
  const rows = sql`select * from ${table} where ${conditions} order by ${order}`
  if (!filter)
    return sql`select *, true as fits, false as stops from (${rows} ${limit}) as ${table}`
  const most = sql.raw(String(countExamined(request)))
  return sql`
    select * from (
      select *, ${filter} as fits, row_number() over (order by ${order}) = ${most} as stops
      from (${rows} limit ${most}) as ${table}
    ) as ${table} where fits or stops order by ${order} ${limit}`
}

/**
 * Where the page begins, and the times it may have. An index scan starts at the first of several conditions on the
 * time.
 * @param only the first column of the index, as a range, which unlike a single value has an order
 */
function listBounds(
  { merchantCode, time, id }: ListKey,
  request: PageRequest,
  only?: { column: PgColumn; value: string },
): (SQL | undefined)[] {
  const { from, to, after } = request
  const latest = selectLatest(request)
  const [column, value] = only ? [sql`${only.column}, `, sql`${only.value}, `] : [sql``, sql``]
  return [
    only && and(gte(only.column, only.value), lte(only.column, only.value)),
    after && to === undefined
      ? sql`(${column}${time}, ${id}) <= (${value}${after.time}::timestamptz, ${after.id})`
      : latest && sql`(${column}${time}) <= (${value}${latest})`,
    from === undefined ? undefined : sql`(${column}${time}) >= (${value}${from}::timestamptz)`,
    to === undefined ? undefined : lt(time, to),
    after &&
      sql`(${time}, ${id}, ${merchantCode})
        < (${after.time}::timestamptz, ${after.id}, ${after.merchantCode})`,
  ]
}

/**
 * Selects rows by unique keys, for the `with` of a statement, like `pickNewest`. An index has the columns in this
 * order.
 * @param keys a JSON array of objects with these properties
 */
export function pickByKeys<T extends PgTable, Name extends keyof T['_']['columns'] & string>(
  drizzle: Pick<PostgresJsDatabase<Record<string, unknown>>, '$with'>,
  table: T,
  names: readonly Name[],
  keys: string | Placeholder,
) {
  const { list, definition } = describeColumns(pickColumns(table, ...names))
  return drizzle.$with(getTableName(table), {}).as(sql`
    select found.* from (
      select ${sql.raw(list)} from json_to_recordset(${keys}::json) as k (${sql.raw(definition)})
    ) as k cross join lateral (
      select * from ${table} as t where ${sql.raw(byKey('t', names.map(toSnakeCase), 'k'))} limit 1
    ) as found`)
}

/** The maximum number of rows that a page compares with its filter, which take 10 ms. */
export const EXAMINED = 5_000

/** Only a few numbers, because every connection keeps a prepared statement for each. */
const ROWS_EXAMINED = [250, 500, 1_000, 2_500, EXAMINED]

/** Several accounts share the rows, but each gets a minimum, because the page's rows could all be from one account. */
function countExamined({ merchants, examined = EXAMINED }: PageRequest): number {
  const share = examined / Math.max(1, merchants.length)
  return ROWS_EXAMINED.find((rows) => rows >= share) ?? EXAMINED
}

/** The latest possible time of a row on the page. A cursor may be outside the filter's times. */
function selectLatest({ after, to }: PageRequest): SQL | undefined {
  if (!after) return to === undefined ? undefined : sql`${to}::timestamptz`
  const ofCursor = sql`${after.time}::timestamptz`
  return to === undefined ? ofCursor : sql`least(${ofCursor}, ${to}::timestamptz)`
}

/** Reads the rows in the column's own order, as `byKey` does, so that no other index is used. */
function selectFew(conditions: SQL | undefined, column: PgColumn, from: string, to = from): SQL {
  return sql`
    select * from ${column.table} where ${conditions} and ${column} >= ${from} and ${column} <= ${to}
    order by ${column} offset 0`
}

/** A literal. With a parameter the planner expects a tenth of the table, and reads it all (118 ms, not 4 ms). */
function writeLimit(limit: number): SQL {
  return sql.raw(`limit ${countRowsRead(limit)}`)
}

/** Whether a row of `pickNewest` passes the filter, and whether reading its account stopped there. */
export const EXAMINATION = {
  fits: sql<boolean | null>`fits`,
  stops: sql<boolean | null>`stops`,
}

export type PageRead<Row> = {
  rows: Row[]
  /** The last row examined, if reading stopped before the page was full. The next page begins after it. */
  stoppedAt: Row | undefined
}

/** Shows nothing after the first row at which an account stopped, since later rows of that account may be missing. */
export function cutRead<Row extends { [Name in keyof typeof EXAMINATION]: boolean | null }>(
  rows: readonly Row[],
  limit: number,
): PageRead<Omit<Row, keyof typeof EXAMINATION>> {
  const stop = rows.findIndex(({ stops }) => stops === true)
  const examined = stop === -1 ? rows : rows.slice(0, stop + 1)
  const fitting = examined.flatMap(({ fits, stops: _, ...row }) => (fits === true ? [row] : []))
  return { rows: fitting, stoppedAt: fitting.length > limit ? undefined : rows[stop] }
}

const ROWS_READ = [11, 51, 101, 201]

/** How many rows are read for a page, which is more than it shows. Only a few numbers, as they are literals. */
export function countRowsRead(limit: number): number {
  return ROWS_READ.find((rows) => rows > limit) ?? Math.trunc(limit) + 1
}
