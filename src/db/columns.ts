import { getTableColumns, type Table } from 'drizzle-orm'

/**
 * Every column of a table under its name in the schema, for the `select` or `returning` of a statement
 * written out in SQL: its rows are those that the query builder gives.
 * @param from what the table is called in the statement
 */
export function listColumns(table: Table, from: string): string {
  return Object.entries(getTableColumns(table))
    .map(([name, column]) => `${from}.${column.name} as "${name}"`)
    .join(', ')
}
