/**
 * The end of a `select` that reads rows by a key: the last conditions of its `where`, and its `order by`. Put it into a
 * lateral subquery that ends with `limit 1`, or with `offset 0` where the key is not unique, so that the planner joins
 * in no other order; not into `exists`, which drops both. An index has to begin with the columns of the key.
 *
 * Which rows are read must not depend on statistics: a connection keeps a plan made for an empty table, in which all
 * indexes that begin with the merchant are as good. A range of one value has an order, as a single value has not, and
 * only the index of the key has the rows in it without a sort.
 * @param table the table's alias in the subquery
 * @param columns the columns of the key, in the order of the index
 * @param of the alias, outside the subquery, of what holds the key's values, in columns of the same names
 */
export function byKey(table: string, columns: readonly string[], of: string): string {
  return byExpressions(
    columns.map((column) => `${table}.${column}`),
    columns.map((column) => `${of}.${column}`),
  )
}

/** `byKey` for values in columns of other names, and for an index of expressions. */
export function byExpressions(key: readonly string[], values: readonly string[]): string {
  const last = key.length - 1
  const conditions = key.map((column, n) =>
    n < last
      ? `${column} = ${values[n]}`
      : `${column} >= ${values[n]} and ${column} <= ${values[n]} order by ${column}`,
  )
  return conditions.join(' and ')
}
