/**
 * The time of the unit of work, for the `from` of a statement. Citus refuses functions that are not immutable inside
 * `case`, `coalesce`, `returning` and `do update set`, even in a subquery.
 */
export const CLOCK = 'unnest(array[now()]) as clock (at)'

/** Adds milliseconds to a time; both are columns. `timestamptz + interval` would depend on the session's time zone. */
export const addMs = (time: string, ms: string) =>
  `(${time} at time zone 'UTC' + ${ms} * interval '1 millisecond') at time zone 'UTC'`
