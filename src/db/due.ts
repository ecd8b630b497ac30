import type { Sql, Tx } from './client.ts'

/** Wakes the sync within milliseconds; polling is the net under it. */
export const SYNC_DUE = 'sync_due'

/** Tells waiting readers that a transaction may look different; the payload is `[merchantCode, transactionId]`. */
export const TRANSACTION_CHANGED = 'transaction_changed'

/** Wakes readers that wait for the transaction, once the commit is done. */
export async function announceChange(
  tx: Tx,
  { merchantCode, transactionId }: { merchantCode: string; transactionId: string },
): Promise<never[]> {
  await tx`select pg_notify(${TRANSACTION_CHANGED}, ${JSON.stringify([merchantCode, transactionId])})`
  return []
}

/**
 * Assignments for `update transactions as t`: somebody asks for a query now. Retries and polls start
 * anew. While a query runs only `want` grows, and the settling claim sees it; otherwise the query
 * comes at once, but in a burst not closer to the last one than its gap.
 */
export function makeDue(sql: Sql) {
  return sql`
    want = t.want + 1, attempts = 0, polls = 0, asked_for_at = now(), abandoned_at = null,
    due_at = case
      when t.lease_id is not null then t.due_at
      else least(t.due_at, greatest(now(), t.queried_at + t.gap_ms * interval '1 millisecond')) end`
}
