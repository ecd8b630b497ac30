/**
 * The moment of a unit of work, for the `from` of a statement: a distributed Postgres evaluates no function that depends
 * on more than its arguments inside `case`, `coalesce`, `returning` or `do update set`.
 */
export const CLOCK = '(select now() as at) as clock'

/** Adds milliseconds to a time, both columns. `timestamptz + interval` would depend on the time zone of the session. */
export const addMs = (time: string, ms: string) =>
  `(${time} at time zone 'UTC' + ${ms} * interval '1 millisecond') at time zone 'UTC'`
