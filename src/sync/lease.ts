import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { TRANSACTION_CHANGED } from '../db/due.ts'
import type { Call } from '../gateway/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import type { Claim } from './claim.ts'
import { type NextStep, type QueryEnd, scheduleNext } from './schedule.ts'

/** A leased transaction while a settling commit holds it. */
export type LeasedRow = { state: string; newer: boolean; asOf: string }

/** What was written; `lost` when the lease had gone to somebody else and nothing was. */
export type Settled = {
  next: NextStep['kind'] | 'lost'
  lastError: string | null
  dueAgain: boolean
}

export const LOST: Settled = { next: 'lost', lastError: null, dueAgain: false }

/**
 * The fence: only who holds the lease gets the row, and keeps it locked until the commit.
 * @param sentAfterMs from `claim.claimedAt` to the sending, by the monotonic clock
 */
export async function lockLeased(
  tx: Tx,
  claim: Claim,
  sentAfterMs: number,
): Promise<LeasedRow | undefined> {
  const [row] = await tx<LeasedRow[]>`
    select state, as_of is null or as_of < sent.at as newer, sent.at::text as "asOf"
    from transactions, (
      select ${claim.claimedAt}::timestamptz + ${sentAfterMs}::float8 * interval '1 millisecond' as at
    ) as sent
    where merchant_code = ${claim.merchantCode} and transaction_id = ${claim.transactionId}
      and lease_id = ${claim.leaseId}
    for update of transactions`
  return row
}

/** Records a query for proof, whatever came of it. */
export async function recordCall(
  tx: Tx,
  { merchantCode, transactionId }: Claim,
  { outcome, record }: Call<ListedPayment[]>,
  sentAt: string,
): Promise<number> {
  const code = { answered: '0', rejected: null, unavailable: null, unknown: null }[outcome.kind]
  const [row] = await tx<{ id: number }[]>`
    insert into gateway_calls (merchant_code, transaction_id, command, body_sha256, sent_at,
      duration_ms, outcome, http_status, code, message, answer)
    values (${merchantCode}, ${transactionId}, ${record.command}, ${record.bodySha256}, ${sentAt},
      ${record.durationMs}, ${outcome.kind}, ${record.httpStatus ?? null},
      ${outcome.kind === 'rejected' ? outcome.code : code},
      ${'message' in outcome ? outcome.message : outcome.reason},
      ${outcome.kind === 'answered' ? JSON.stringify(outcome.value) : null}::text::jsonb)
    returning id`
  if (!row) throw new Error('the call was not recorded')
  return row.id
}

/**
 * Ends the claim: due again by the schedule or by a refund's own time, whichever is earlier. While a
 * refund is under way nothing is abandoned. Who asked while the query ran gets one more, and so does a question whose answer was
 * overtaken; both at the burst's distance.
 */
export async function endClaim(
  ctx: Context,
  tx: Tx,
  claim: Claim,
  end: QueryEnd,
): Promise<Settled> {
  const step = scheduleNext(end, claim, ctx.config)
  const [row] = await tx<{ next: Settled['next']; dueAgain: boolean }[]>`
    update transactions as t set
      lease_id = null,
      attempts = case when want = claimed then ${step.attempts}::int else 0 end,
      polls = case when want = claimed then ${step.polls}::int else 0 end,
      last_error = ${step.lastError},
      abandoned_at = case when want = claimed and ${step.kind === 'abandon'} and r.due_at is null
        then now() end,
      due_at = least(r.due_at, case
        when want <> claimed or ${step.kind === 'at once'}
          then greatest(now(), queried_at + gap_ms * interval '1 millisecond')
        else now() + ${step.kind === 'again' ? step.inMs : null}::float8 * interval '1 millisecond' end)
    from (
      select min(due_at) as due_at from refunds
      where merchant_code = ${claim.merchantCode} and transaction_id = ${claim.transactionId}
    ) as r
    where merchant_code = ${claim.merchantCode} and transaction_id = ${claim.transactionId}
    returning t.due_at is not null as "dueAgain",
      case
        when want <> claimed then 'at once'
        when ${step.kind === 'abandon'} and t.due_at is not null then 'again'
        else ${step.kind} end as next,
      pg_notify(${TRANSACTION_CHANGED}, ${JSON.stringify([claim.merchantCode, claim.transactionId])})`
  if (!row) throw new Error('the claim was not ended')
  return { next: row.next, dueAgain: row.dueAgain, lastError: step.lastError }
}
