import { getTableColumns, getTableName, is, SQL, type Table } from 'drizzle-orm'
import type { PgTable } from 'drizzle-orm/pg-core'
import type postgres from 'postgres'
import type { Tx } from './types.ts'

type RowSetColumns<Name extends string = string> = Readonly<Record<Name, string>>

type Row<Name extends string> = { readonly [Property in Name]?: unknown }

/** Returns the SQL types of columns, by the names of their properties in the schema. */
export function pickColumns<T extends PgTable, Name extends keyof T['_']['columns'] & string>(
  table: T,
  ...names: readonly Name[]
): RowSetColumns<Name> {
  const columns = getTableColumns(table)
  const types = names.map((name) => [name, columns[name]?.getSQLType() ?? 'text'])
  return Object.fromEntries(types)
}

/**
 * Passes any number of rows as one JSON parameter, so that the text of the statement stays the same. For use after
 * `from`: the columns are the properties' names in snake case, and `ordinality` counts from 1. Decimals, times and
 * bytes (`\x…`) travel as strings, so they stay exact. An undefined member is null. The parameter is text, because a
 * session without the query builder's types would encode a JSON one twice.
 * @param columns what is sent of each row. Keep it in a constant, because its text is cached
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
 * The beginning of a statement that inserts rows into a table in the given order. The caller may add `on conflict` or
 * `returning`; the table's alias is `target`.
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

/** Inserts one row where the query builder, which takes long to write a text, would slow down a frequent request. */
export function insertRow<T extends PgTable>(
  sql: Tx,
  table: T,
  row: T['$inferInsert'],
  returning = '',
) {
  const columns = getTableColumns(table)
  const given = Object.entries(row).filter(([, value]) => value !== undefined)
  const names = given.map(([name]) => `"${columns[name]?.name}"`).join(', ')
  const places = given.map((_, at) => `$${at + 1}`).join(', ')
  const text = `insert into "${getTableName(table)}" (${names}) values (${places}) ${returning}`
  const values = given.map(([name, value]) => {
    return value === null ? null : columns[name]?.mapToDriverValue(value)
  })
  // The builder does not tell the types of what it gives the driver.
  return sql.unsafe(text, values as postgres.ParameterOrJSON<number>[], { prepare: true })
}

/**
 * Completes a row to what its insert stores: a member that is left out takes its column's default, or else is null.
 * @throws Error for a default that only the database knows
 */
export function completeRow<T extends PgTable>(
  table: T,
  given: T['$inferInsert'],
): T['$inferSelect'] {
  const values: Readonly<Record<string, unknown>> = given
  const row = Object.entries(getTableColumns(table)).map(([name, column]) => {
    const value = values[name] ?? column.default ?? null
    if (is(value, SQL) || (value === null && column.notNull)) {
      throw new Error(`the value of ${name} must be given`)
    }
    return [name, value]
  })
  return Object.fromEntries(row)
}

/** Assignments for `on conflict do update set`: each column takes the value that was to be inserted. */
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

/** `rowSet` as text, for a constant statement whose parameter (`$1`) holds the rows as JSON. */
export function writeRowSet(alias: string, columns: RowSetColumns, parameter: string): string {
  const { list, definition } = describeColumns(columns)
  return `(
    select ${list}, ordinality
    from rows from (json_to_recordset(${parameter}::text::json) as (${definition})) with ordinality
  ) as ${alias}`
}

type Description = { names: string[]; list: string; definition: string }
const descriptions = new WeakMap<RowSetColumns, Description>()

/** The columns as selected from a JSON record set, and as that defines them. */
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

export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Selects columns of a table, by default all, under their names in the schema, so that the rows of a statement in SQL
 * equal those of the query builder.
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

/** The same, but numbers, decimals and times become text, as in a JSON object. */
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
  // `2026-11-21 09:00:00.123456+00` is cut, not parsed, because every response contains several.
  if (time[10] !== ' ' || !time.endsWith('+00')) return new Date(time).toISOString()
  const fraction = time[19] === '.' ? time.slice(20, time.length - 3) : ''
  return `${time.slice(0, 10)}T${time.slice(11, 19)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}

export function withIso<Name extends string, Row extends Record<Name, string | null>>(
  row: Row,
  names: readonly Name[],
): Row {
  return { ...row, ...Object.fromEntries(names.map((name) => [name, toIso(row[name])])) }
}
