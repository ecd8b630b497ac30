import type { Tx } from '../db/client.ts'
import type { TransactionKey } from '../payments/apply.ts'

export type RefundStatus =
  | 'pending'
  | 'sending'
  | 'accepted'
  | 'unknown'
  | 'succeeded'
  | 'failed'
  | 'needs_review'

/** A refund as a settling commit holds it, locked. Ages are ms by the database's clock. */
export type RefundRow = {
  merchantCode: string
  transactionId: string
  refundId: string
  paymentId: string
  amount: string
  receiver: Buffer | null
  status: RefundStatus
  attempts: number
  firstSentAt: string | null
  lastSentAt: string | null
  sentAmidGrowth: boolean
  unanswered: boolean
  /** `refundedAmount` when it was first sent, if a refund known by then did not show in it yet; else null. */
  refundedBefore: string | null
  refusedCode: string | null
  refusedAt: string | null
  failureCode: string | null
  failureNotifiedAt: string | null
  gatewayRefundId: string | null
  known: boolean
  inferred: boolean
  matched: boolean
  failureSource: 'gateway' | 'service' | null
  failureReason: string | null
  failureMessage: string | null
  polls: number
  sinceRequestedMs: number
  /** Since the first and the last attempt; null before the first. */
  sinceFirstSentMs: number | null
  sinceSentMs: number | null
  sinceRefusedMs: number | null
  dueInMs: number | null
  /** From the refusal, and from the first attempt and the failure's notification, to the sending of the snapshot. */
  refusedToSnapshotMs: number | null
  sentBeforeSnapshot: boolean
  /** Asked for before the snapshot at hand was: only then may it be sent on what that shows. */
  requestedBeforeSnapshot: boolean
  failureBeforeSnapshot: boolean
}

/** A refund while a settling commit decides about it. */
export type RefundWork = {
  /** As it was read, and as it shall be. */
  before: RefundRow
  now: RefundRow
  moves: { from: RefundStatus; to: RefundStatus; cause: Cause }[]
  /** Until the next look (ms); null when it is over. */
  dueInMs: number | null
}

/** What brought a change: the query, the notification, and in words. */
export type Cause = { words: string; callId?: number; ipnEventId?: number }

/**
 * The refunds of a transaction, oldest first, locked (after the transaction's and the payments' rows).
 * @param asOf when the snapshot at hand was sent, if there is one
 */
export async function lockRefunds(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  asOf: string | null,
): Promise<RefundRow[]> {
  return await tx<RefundRow[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId", refund_id as "refundId",
      payment_id as "paymentId", amount, receiver, status, attempts, first_sent_at as "firstSentAt",
      last_sent_at as "lastSentAt", sent_amid_growth as "sentAmidGrowth", unanswered,
      refunded_before as "refundedBefore", refused_code as "refusedCode", refused_at as "refusedAt",
      failure_code as "failureCode", failure_notified_at as "failureNotifiedAt",
      gateway_refund_id as "gatewayRefundId", known, inferred, matched, failure_source as "failureSource",
      failure_reason as "failureReason", failure_message as "failureMessage", polls,
      (extract(epoch from due_at - now()) * 1000)::float8 as "dueInMs",
      (extract(epoch from clock_timestamp() - requested_at) * 1000)::float8 as "sinceRequestedMs",
      (extract(epoch from clock_timestamp() - first_sent_at) * 1000)::float8 as "sinceFirstSentMs",
      (extract(epoch from clock_timestamp() - last_sent_at) * 1000)::float8 as "sinceSentMs",
      (extract(epoch from clock_timestamp() - refused_at) * 1000)::float8 as "sinceRefusedMs",
      (extract(epoch from ${asOf}::timestamptz - refused_at) * 1000)::float8 as "refusedToSnapshotMs",
      coalesce(requested_at < ${asOf}::timestamptz, false) as "requestedBeforeSnapshot",
      coalesce(first_sent_at < ${asOf}::timestamptz, true) as "sentBeforeSnapshot",
      coalesce(failure_notified_at < ${asOf}::timestamptz, false) as "failureBeforeSnapshot"
    from refunds where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
    order by requested_at, refund_id for update`
}

/** Whether somebody who reads the refund sees a difference; `sending` is shown as pending. */
export function hasVisibleChange({ before, now, moves }: RefundWork): boolean {
  return moves.length > 0 || before.inferred !== now.inferred
}

/** The same, but for the time of its last change. */
export function looksDifferent({ before, now }: RefundWork): boolean {
  return SHOWN.some((member) => before[member] !== now[member]) || show(before) !== show(now)
}

const SHOWN = [
  'inferred',
  'gatewayRefundId',
  'failureSource',
  'failureReason',
  'failureMessage',
] as const

function show({ status }: RefundRow): RefundStatus {
  return status === 'sending' ? 'pending' : status
}

/**
 * Writes a refund over its row, and each move of its status into `changes`. The row must still have the
 * status it was read with: a decision made on another one is not written.
 * @throws Error when the row has moved meanwhile, which the locks exclude
 */
export async function saveRefund(tx: Tx, work: RefundWork): Promise<void> {
  const { before, now, moves, dueInMs } = work
  if (now === before && dueInMs === before.dueInMs) return
  const [saved] = await tx<{ count: number }[]>`
    with saved as (
      update refunds set
        status = ${now.status}, attempts = ${now.attempts}, first_sent_at = ${now.firstSentAt},
        last_sent_at = ${now.lastSentAt}, sent_amid_growth = ${now.sentAmidGrowth},
        unanswered = ${now.unanswered}, refunded_before = ${now.refundedBefore},
        refused_code = ${now.refusedCode}, refused_at = ${now.refusedAt},
        failure_code = ${now.failureCode}, failure_notified_at = ${now.failureNotifiedAt},
        gateway_refund_id = ${now.gatewayRefundId}, known = ${now.known}, inferred = ${now.inferred},
        matched = ${now.matched}, failure_source = ${now.failureSource},
        failure_reason = ${now.failureReason}, failure_message = ${now.failureMessage},
        polls = ${now.polls},
        updated_at = case when ${hasVisibleChange(work)} then now() else updated_at end,
        due_at = now() + ${dueInMs}::float8 * interval '1 millisecond'
      where merchant_code = ${now.merchantCode} and refund_id = ${now.refundId}
        and status = ${before.status}
      returning merchant_code, transaction_id, payment_id, refund_id
    ), recorded as (
      insert into changes (merchant_code, transaction_id, payment_id, refund_id, field, before, after,
        call_id, ipn_event_id, cause)
      select merchant_code, transaction_id, payment_id, refund_id, 'status', m.before, m.after,
        m.call_id::bigint, m.ipn_event_id::bigint, m.cause
      from saved, unnest(
        ${moves.map(({ from }) => from)}::text[], ${moves.map(({ to }) => to)}::text[],
        ${moves.map(({ cause }) => cause.callId?.toString() ?? null)}::text[],
        ${moves.map(({ cause }) => cause.ipnEventId?.toString() ?? null)}::text[],
        ${moves.map(({ cause }) => cause.words)}::text[]
      ) with ordinality as m (before, after, call_id, ipn_event_id, cause, at)
      order by m.at
    )
    select count(*) as count from saved`
  if (saved?.count !== 1) throw new Error(`refund ${now.refundId} moved while it was decided about`)
}
