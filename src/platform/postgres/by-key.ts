/**
 * The end of a `select` that reads rows by key: the last conditions of its `where`, and its `order by`. It belongs in a
 * lateral subquery that ends with `limit 1`, or `offset 0` if the key is not unique, so that the planner cannot reorder
 * the join; not in `exists`, which drops both. An index must begin with the columns of the key.
 *
 * Statistics must not decide which index is used: a connection keeps a plan made for an empty table, where all indexes
 * that begin with the merchant look equal. A range of a single value has an order, unlike equality, and only the key's
 * index returns the rows in this order without a sort.
 * @param table the table's alias in the subquery
 * @param columns the columns of the key, in the order of the index
 * @param of the alias, outside the subquery, of the row with the values, in columns of the same names
 */
export function byKey(table: string, columns: readonly string[], of: string): string {
  return byExpressions(
    columns.map((column) => `${table}.${column}`),
    columns.map((column) => `${of}.${column}`),
  )
}

/** `byKey` for values in columns with other names, and for an index on expressions. */
export function byExpressions(key: readonly string[], values: readonly string[]): string {
  const last = key.length - 1
  const conditions = key.map((column, n) =>
    n < last
      ? `${column} = ${values[n]}`
      : `${column} >= ${values[n]} and ${column} <= ${values[n]} order by ${column}`,
  )
  return conditions.join(' and ')
}
