import { getTableColumns, type Table } from 'drizzle-orm'

/**
 * Lists columns of a table under their names in the schema, for the `select` or `returning` of a
 * statement written in SQL: its rows equal those of the query builder.
 * @param from the table's name or alias in the statement
 * @param names the columns to list; by default all of them
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
      const cast = column?.dataType === 'boolean' ? '' : '::text'
      return `${from}.${column?.name}${cast} as "${name}"`
    })
    .join(', ')
}
