import { getTableColumns, getTableName, type Table } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type { Tx } from './types.ts'

/** The properties of the rows, with their SQL types. */
export type RowSetColumns<Name extends string = string> = Readonly<Record<Name, string>>

type Row<Name extends string> = { readonly [Property in Name]?: unknown }

/** Columns of a table by their properties in the schema. */
export function pickColumns<T extends PgTable, Name extends keyof T['_']['columns'] & string>(
  table: T,
  ...names: readonly Name[]
): RowSetColumns<Name> {
  const columns = getTableColumns(table)
  const types = names.map((name) => [name, columns[name]?.getSQLType() ?? 'text'])
  return Object.fromEntries(types)
}

/**
 * A row set for the `from` of a statement: any number of rows as one JSON parameter, so that its text stays the same.
 * Its columns are the properties' names in snake case, and `ordinality` counts the rows from 1. Decimals, times and
 * bytes (`\x…`) travel as strings that Postgres parses, hence exact; a member that is undefined is null.
 * @param alias the row set's name in the statement
 * @param columns what is sent of the rows; keep it in a constant, its text is built once
 */
export function rowSet<Name extends string>(
  sql: Tx,
  alias: string,
  columns: RowSetColumns<Name>,
  rows: readonly Row<NoInfer<Name>>[],
) {
  const json = JSON.stringify(rows, describeColumns(columns).names)
  const [before = '', after = ''] = writeRowSet(alias, columns, '$').split('$')
  return sql`${sql.unsafe(before)}${json}${sql.unsafe(after)}`
}

/**
 * The start of a statement that inserts a row set into a table, in the order given. The caller may continue it with
 * `on conflict` or `returning`; the table's alias is `target`.
 * @param columns from `pickColumns` of this table
 */
export function insertRows<Name extends string, T extends PgTable>(
  sql: Tx,
  table: T,
  columns: RowSetColumns<Name>,
  rows: readonly Pick<T['$inferInsert'], Name & keyof T['$inferInsert']>[],
) {
  const known = getTableColumns(table)
  const names = Object.keys(columns)
  const targets = names.map((name) => `"${known[name]?.name}"`).join(', ')
  const values = names.map(toSnakeCase).join(', ')
  return sql`
    insert into ${sql.unsafe(`"${getTableName(table)}"`)} as target (${sql.unsafe(targets)})
    select ${sql.unsafe(values)} from ${rowSet<string>(sql, 'given', columns, rows)} order by ordinality`
}

/** Assignments for `on conflict do update set`: the columns get the values that were to be inserted. */
export function setExcluded<T extends PgTable, Name extends keyof T['_']['columns'] & string>(
  sql: Tx,
  table: T,
  ...names: readonly Name[]
) {
  const columns = getTableColumns(table)
  const assignments = names.map(
    (name) => `"${columns[name]?.name}" = excluded."${columns[name]?.name}"`,
  )
  return sql`${sql.unsafe(assignments.join(', '))}`
}

/** The same as text, for a statement that is a constant; the value of the parameter (`$1`) is the rows as JSON. */
export function writeRowSet(alias: string, columns: RowSetColumns, parameter: string): string {
  const { list, definition } = describeColumns(columns)
  return `(
    select ${list}, ordinality
    from rows from (json_to_recordset(${parameter}::json) as (${definition})) with ordinality
  ) as ${alias}`
}

type Description = { names: string[]; list: string; definition: string }
const descriptions = new WeakMap<RowSetColumns, Description>()

/** The columns as they are selected from a JSON record set, and as that defines them. */
export function describeColumns(columns: RowSetColumns): Description {
  const known = descriptions.get(columns)
  if (known) return known
  const names = Object.keys(columns)
  const described = {
    names,
    list: names.map((name) => `"${name}" as ${toSnakeCase(name)}`).join(', '),
    definition: names.map((name) => `"${name}" ${columns[name]}`).join(', '),
  }
  descriptions.set(columns, described)
  return described
}

/** `merchantCode` is the column `merchant_code`. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Lists columns of a table, by default all, under their names in the schema: the rows of a statement written in SQL
 * equal those of the query builder then.
 * @param from the table's name or alias in the statement
 */
export function listColumns<T extends Table>(
  table: T,
  from: string,
  names?: readonly (keyof T['_']['columns'] & string)[],
): string {
  const columns = getTableColumns(table)
  return (names ?? Object.keys(columns))
    .map((name) => `${from}.${columns[name]?.name} as "${name}"`)
    .join(', ')
}

const UNCHANGED: readonly (string | undefined)[] = ['boolean', 'json']

/** The same as the definition of a JSON object, with every number, decimal and time as Postgres writes it in text. */
export function listAsText<T extends Table>(
  table: T,
  from: string,
  names: readonly (keyof T['_']['columns'] & string)[],
): string {
  const columns = getTableColumns(table)
  return names
    .map((name) => {
      const column = columns[name]
      const cast = UNCHANGED.includes(column?.dataType) ? '' : '::text'
      return `${from}.${column?.name}${cast} as "${name}"`
    })
    .join(', ')
}

/** Converts a time as Postgres writes it (sessions run in UTC) to ISO 8601 in UTC with milliseconds. */
export function toIso(time: string): string
export function toIso(time: string | null): string | null
export function toIso(time: string | null): string | null {
  if (time === null) return null
  // `2026-11-21 09:00:00.123456+00`: cut, not parsed, because every response holds several.
  if (time[10] !== ' ' || !time.endsWith('+00')) return new Date(time).toISOString()
  const fraction = time[19] === '.' ? time.slice(20, time.length - 3) : ''
  return `${time.slice(0, 10)}T${time.slice(11, 19)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}

/** Returns a row with some of its times in ISO 8601. */
export function withIso<Name extends string, Row extends Record<Name, string | null>>(
  row: Row,
  names: readonly Name[],
): Row {
  return { ...row, ...Object.fromEntries(names.map((name) => [name, toIso(row[name])])) }
}
