/**
 * The moment of a unit of work, for the `from` of a statement: Citus takes no function inside `case`, `coalesce`,
 * `returning` or `do update set` that depends on more than its arguments. It would look into a subquery.
 */
export const CLOCK = 'unnest(array[now()]) as clock (at)'

/** Adds milliseconds to a time, both columns. `timestamptz + interval` would depend on the time zone of the session. */
export const addMs = (time: string, ms: string) =>
  `(${time} at time zone 'UTC' + ${ms} * interval '1 millisecond') at time zone 'UTC'`
