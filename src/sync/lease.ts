import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { TRANSACTION_CHANGED } from '../db/due.ts'
import type { Call } from '../gateway/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import type { Resume } from '../trace.ts'
import type { Claim } from './claim.ts'
import { type NextStep, type QueryEnd, scheduleNext } from './schedule.ts'

/** A leased transaction while a settling commit holds it. */
export type LeasedRow = {
  state: string
  final: boolean
  duplicatePayment: boolean
  /** Deliveries of notifications, and whether the delay of the first has been measured. */
  ipnCount: number
  ipnMeasured: boolean
  newer: boolean
  asOf: string
}

/** What was written; `lost` when the lease had gone to somebody else and nothing was. */
export type Settled = {
  next: NextStep['kind'] | 'lost'
  lastError: string | null
  dueAgain: boolean
}

export const LOST: Settled = { next: 'lost', lastError: null, dueAgain: false }

/** A query that came to an end, and when it was sent: ms from `claim.claimedAt`, by the monotonic clock. */
export type Answered = {
  claim: Claim
  call: Call<ListedPayment[]>
  sentAfterMs: number
  /** To its own trace: the commit that it shares may run in another's. */
  resume?: Resume | undefined
}

/**
 * The fence: only who holds the lease gets the row, and keeps it locked until the commit.
 * @returns the rows by their leases; a lease that went to somebody else has none
 */
export async function lockLeased(
  tx: Tx,
  sent: readonly Pick<Answered, 'claim' | 'sentAfterMs'>[],
): Promise<Map<string, LeasedRow>> {
  const rows = await tx<(LeasedRow & { leaseId: string })[]>`
    select lease_id as "leaseId", state, final, duplicate_payment as "duplicatePayment",
      ipn_count as "ipnCount", ipn_measured as "ipnMeasured", as_of is null or as_of < sent.at as newer,
      sent.at::text as "asOf"
    from transactions join (
      select merchant_code, transaction_id, lease_id::uuid,
        claimed_at::timestamptz + after_ms * interval '1 millisecond' as at
      from unnest(
        ${sent.map(({ claim }) => claim.merchantCode)}::text[],
        ${sent.map(({ claim }) => claim.transactionId)}::text[],
        ${sent.map(({ claim }) => claim.leaseId)}::text[],
        ${sent.map(({ claim }) => claim.claimedAt)}::text[],
        ${sent.map(({ sentAfterMs }) => sentAfterMs)}::float8[]
      ) as s (merchant_code, transaction_id, lease_id, claimed_at, after_ms)
    ) as sent using (merchant_code, transaction_id, lease_id)
    order by merchant_code, transaction_id for update of transactions`
  return new Map(rows.map(({ leaseId, ...row }) => [leaseId, row]))
}

const CODES = { answered: '0', unavailable: null, unknown: null }

/** Records queries for proof, whatever came of them; returns the records' ids, in the same order. */
export async function recordCalls(
  tx: Tx,
  calls: readonly { claim: Claim; call: Call<ListedPayment[]>; asOf: string }[],
): Promise<number[]> {
  const rows = calls.map(({ claim, call: { outcome, record }, asOf }) => ({
    ...claim,
    ...record,
    asOf,
    outcome: outcome.kind,
    code: outcome.kind === 'rejected' ? outcome.code : CODES[outcome.kind],
    message: 'message' in outcome ? outcome.message : outcome.reason,
    answer: outcome.kind === 'answered' ? JSON.stringify(outcome.value) : null,
  }))
  const recorded = await tx<{ id: number; leaseId: string }[]>`
    with calls as materialized (
      select nextval('gateway_calls_id_seq') as id, c.* from unnest(
        ${rows.map((r) => r.leaseId)}::text[], ${rows.map((r) => r.merchantCode)}::text[],
        ${rows.map((r) => r.transactionId)}::text[], ${rows.map((r) => r.command)}::text[],
        ${rows.map((r) => r.bodySha256.toString('hex'))}::text[], ${rows.map((r) => r.asOf)}::text[],
        ${rows.map((r) => r.durationMs)}::int[], ${rows.map((r) => r.outcome)}::text[],
        ${rows.map((r) => r.httpStatus ?? null)}::int[], ${rows.map((r) => r.code)}::text[],
        ${rows.map((r) => r.message)}::text[], ${rows.map((r) => r.answer)}::text[]
      ) as c (lease_id, merchant_code, transaction_id, command, body_sha256, sent_at, duration_ms,
        outcome, http_status, code, message, answer)
    ), recorded as (
      insert into gateway_calls (id, merchant_code, transaction_id, command, body_sha256, sent_at,
        duration_ms, outcome, http_status, code, message, answer)
      select id, merchant_code, transaction_id, command, decode(body_sha256, 'hex'),
        sent_at::timestamptz, duration_ms, outcome, http_status, code, message, answer::jsonb
      from calls
    )
    select id, lease_id as "leaseId" from calls`
  const ids = new Map(recorded.map(({ id, leaseId }) => [leaseId, id]))
  return rows.map(({ leaseId }) => {
    const id = ids.get(leaseId)
    if (id === undefined) throw new Error('a call was not recorded')
    return id
  })
}

/**
 * Ends claims: each due again by the schedule or by a refund's own time, whichever is earlier. While a
 * refund is under way nothing is abandoned. Who asked while the query ran gets one more, and so does a
 * question whose answer was overtaken; both at the burst's distance.
 * @returns in the order given
 */
export async function endClaims(
  ctx: Context,
  tx: Tx,
  ends: readonly { claim: Claim; end: QueryEnd }[],
): Promise<Settled[]> {
  if (ends.length === 0) return []
  const steps = ends.map(({ claim, end }) => ({
    ...claim,
    ...scheduleNext(end, claim, ctx.config),
  }))
  const reconcileMs = ctx.config.RECONCILE_FINAL_FOR_MS
  const rows = await tx<{ leaseId: string; next: Settled['next']; dueAgain: boolean }[]>`
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
        when want <> claimed or s.kind = 'at once'
          then greatest(now(), queried_at + gap_ms * interval '1 millisecond')
        else now() + s.in_ms * interval '1 millisecond' end)
    from (
      select steps.*, (
        select min(due_at) from refunds as r
        where r.merchant_code = steps.merchant_code and r.transaction_id = steps.transaction_id
      ) as refund_due_at
      from unnest(
        ${steps.map((s) => s.merchantCode)}::text[], ${steps.map((s) => s.transactionId)}::text[],
        ${steps.map((s) => s.leaseId)}::text[], ${steps.map((s) => s.kind)}::text[],
        ${steps.map((s) => (s.kind === 'again' ? s.inMs : null))}::float8[],
        ${steps.map((s) => s.attempts)}::int[], ${steps.map((s) => s.polls)}::int[],
        ${steps.map((s) => s.lastError)}::text[]
      ) as steps (merchant_code, transaction_id, lease_id, kind, in_ms, attempts, polls, last_error)
    ) as s
    where t.merchant_code = s.merchant_code and t.transaction_id = s.transaction_id
    returning s.lease_id as "leaseId", t.due_at is not null as "dueAgain",
      case
        when want <> claimed then 'at once'
        when s.kind = 'abandon' and t.due_at is not null then 'again'
        else s.kind end as next,
      pg_notify(${TRANSACTION_CHANGED},
        '[' || to_json(t.merchant_code) || ',' || to_json(t.transaction_id) || ']')`
  const ended = new Map(rows.map((row) => [row.leaseId, row]))
  return steps.map(({ leaseId, lastError }) => {
    const row = ended.get(leaseId)
    if (!row) throw new Error('a claim was not ended')
    return { next: row.next, dueAgain: row.dueAgain, lastError }
  })
}
