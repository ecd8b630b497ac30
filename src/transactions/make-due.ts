import type { Sql, Tx } from '../platform/postgres/types.ts'

/**
 * The assignments for `update transactions as t` that request a query, and restarts retries and polls.
 * While a query runs only `want` is incremented, and the commit that ends the claim makes the transaction
 * due again. Otherwise the query is due at once; within a burst, `gap_ms` after the last one at the earliest.
 */
export const MAKE_DUE = `
    want = t.want + 1, attempts = 0, polls = 0, asked_for_at = now(), abandoned_at = null,
    due_at = case
      when t.lease_id is not null then t.due_at
      else least(t.due_at, greatest(now(), t.queried_at + t.gap_ms * interval '1 millisecond')) end`

/** The same, for a statement that is built from fragments. */
export function makeDue(sql: Sql | Tx) {
  return sql.unsafe(MAKE_DUE)
}
