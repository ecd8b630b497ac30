import type { TransactionKey } from '../db/transaction-key.ts'
import { byTransaction } from '../db/transaction-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { selectKey } from '../transactions/due.ts'

/**
 * What happened before an answer was asked for, and what only during the call, which the answer cannot show. The clock of
 * the database cannot tell: it goes back, as after a failover to a slower server. Two counters of the transaction can,
 * under the lock of its row: `want`, and `claimed`, its value at the newest claim.
 *
 * Each event of a refund stores the `want` that its commit leaves. Whatever may happen during a call raises it (a
 * request, an approval, a notification, a late answer to an attempt), so it is above the `claimed` of the claim that is
 * in flight. What the holder of the lease records itself need not: the next claim is the next that asks.
 *
 * Without a number an event is ordered by time: in rows of an earlier version, and where the payment has moved, because
 * a number of another transaction says nothing.
 */

/**
 * The counters of a transaction as `t`, for a statement in which `event` is decided. The caller holds its row.
 * @param asOf when the query was sent whose answer is judged (database time), by the newest claim; null without one
 */
export const selectCounters = (tx: Tx, key: TransactionKey, asOf: string | null) => tx`(
    select t.* from ${selectKey(tx, key)} cross join lateral (
      select want, case when ${asOf}::text is not null then claimed end as claimed, ${asOf}::timestamptz as as_of
      from transactions as t where ${tx.unsafe(byTransaction('t'))} limit 1) as t) as t`

/** The condition in SQL that an event of a refund was before the answer of `t`; null where there is none of either. */
export const isBefore = (event: string): string =>
  `coalesce(${event}_number <= t.claimed, ${event}_at < t.as_of)`

/** The condition that nothing has happened to the transaction `t` since the newest claim. */
export const NOTHING_SINCE = 't.want = t.claimed'
