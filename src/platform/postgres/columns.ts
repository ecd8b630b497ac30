import { getTableColumns, type Table } from 'drizzle-orm'

/**
 * Lists every column of a table under its name in the schema, for the `select` or `returning` of a
 * statement written in SQL: its rows equal those of the query builder.
 * @param from the table's name or alias in the statement
 */
export function listColumns(table: Table, from: string): string {
  return Object.entries(getTableColumns(table))
    .map(([name, column]) => `${from}.${column.name} as "${name}"`)
    .join(', ')
}
