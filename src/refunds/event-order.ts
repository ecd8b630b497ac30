import { byTransaction } from '../db/transaction-key.ts'
import type { Tx } from '../platform/postgres/types.ts'

/**
 * An answer of the gateway speaks about what happened before it was asked for. The database's clock cannot tell what
 * that is, because it may go back, as after a failover to a slower server. Two counters of the transaction can tell,
 * under the lock of its row: `want`, which every request for a query raises, and `claimed`, the `want` of the newest claim.
 *
 * Each event of a refund stores the `want` that its commit leaves. Everything that may happen during a call raises
 * `want` (a request, an approval, a notification, a late answer to an attempt), so its number is above the `claimed` of
 * the claim in flight. What the holder of the lease records itself need not raise it, because no other claim is in flight.
 *
 * An event without a number is ordered by time. That concerns rows of an earlier version, and refunds whose payment has
 * moved, because a number of another transaction says nothing. A number above `want` is also of another transaction: a
 * process of an earlier version moved the payment without removing the number.
 */

/**
 * The counters of the transaction `k` as `t`, for the conditions below. The caller holds its row.
 * @param asOf when the newest claim sent the query whose answer is judged (database time); null when none is
 */
export const selectCounters = (tx: Tx, asOf: string | null) => tx`lateral (
      select want, case when ${asOf}::text is not null then claimed end as claimed, ${asOf}::timestamptz as as_of
      from transactions as t where ${tx.unsafe(byTransaction('t'))} limit 1) as t`

/** The condition in SQL that an event of a refund was before the answer of `t`; null where there is none of either. */
export const isBefore = (event: string): string =>
  `coalesce(case when ${event}_number <= t.want then ${event}_number <= t.claimed end, ${event}_at < t.as_of)`

/**
 * The condition that nothing has happened to the transaction `t` since the newest claim. What came while its payment
 * moved here raised the other transaction: that is told by time as well.
 */
export const NOTHING_SINCE = 't.want = t.claimed'
