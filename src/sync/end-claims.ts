import type { Config } from '../config/config.ts'
import { transactions } from '../db/schema.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { notifyTransactionChanged } from '../transactions/notify-changed.ts'
import { type QueryEnd, scheduleNext } from './schedule.ts'
import type { Claim, ClaimEnd } from './types.ts'

const COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId', 'leaseId'),
  ...pickColumns(transactions, 'attempts', 'polls', 'lastError'),
  kind: 'text',
  inMs: 'float8',
}

/**
 * Ends claims. Each transaction is due again by the schedule or by its refunds' due times, whichever is earlier.
 * A transaction with a due refund is not abandoned. A request during the query leads to one more query, and so
 * does a superseded answer; both no sooner than the gap of a burst. Waiting readers are woken after the commit.
 * @returns in the order given
 * @throws Error when a claim was not ended, which the caller's lock excludes
 */
export async function endClaims(
  tx: Tx,
  config: Config,
  ends: readonly { claim: Claim; end: QueryEnd }[],
): Promise<ClaimEnd[]> {
  if (ends.length === 0) return []
  const steps = ends.map(({ claim, end }) => ({
    ...claim,
    ...scheduleNext(end, claim, config),
  }))
  const reconcileMs = config.RECONCILE_FINAL_FOR_MS
  const rows = await tx<{ leaseId: string; next: ClaimEnd['next']; dueAgain: boolean }[]>`
    update transactions as t set
      lease_id = null,
      attempts = case when want = claimed then s.attempts else 0 end,
      polls = case when want = claimed then s.polls else 0 end,
      last_error = s.last_error,
      abandoned_at = case when want = claimed and s.kind = 'abandon' and s.refund_due_at is null
        then now() end,
      reconcile_at = case
        when want = claimed and s.kind = 'abandon' and s.refund_due_at is null and ${reconcileMs > 0}
          then coalesce(reconcile_at, now() + ${reconcileMs}::float8 * interval '1 millisecond')
        else reconcile_at end,
      due_at = least(s.refund_due_at, case
        when want <> claimed or s.kind = 'query_now'
          then greatest(now(), queried_at + gap_ms * interval '1 millisecond')
        else now() + s.in_ms * interval '1 millisecond' end)
    from (
      select steps.*, (
        select min(due_at) from refunds as r
        where r.merchant_code = steps.merchant_code and r.transaction_id = steps.transaction_id
      ) as refund_due_at
      from ${rowSet(tx, 'steps', COLUMNS, steps)}
    ) as s
    where t.merchant_code = s.merchant_code and t.transaction_id = s.transaction_id
    returning s.lease_id as "leaseId", t.due_at is not null as "dueAgain",
      case
        when want <> claimed then 'query_now'
        when s.kind = 'abandon' and t.due_at is not null then 'query_later'
        else s.kind end as next`
  for (const { claim } of ends) notifyTransactionChanged(tx, claim)
  const ended = new Map(rows.map((row) => [row.leaseId, row]))
  return steps.map(({ leaseId, lastError }) => {
    const row = ended.get(leaseId)
    if (!row) throw new Error('a claim was not ended')
    return { next: row.next, dueAgain: row.dueAgain, lastError }
  })
}
