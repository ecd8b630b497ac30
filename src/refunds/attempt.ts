import type { Context } from '../context.ts'
import { MAY_SEND_SQL } from '../db/installation.ts'
import { DomainError } from '../errors.ts'
import type { BodyHmac, GatewayCall, PreparedCall } from '../gateway/types.ts'
import { shortenAmount } from '../money.ts'
import type { SnapshotRef } from '../payments/compare-payments.ts'
import type { BreakerPermit } from '../platform/concurrency/circuit-breaker.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { chooseSendable, failCheck, type Sendable, startAttempt } from './choose.ts'
import type { RefundDraft, RefundRow } from './lifecycle.ts'
import { isStillSurplus } from './order-surplus.ts'
import { decryptReceiver, maskCall, type Receiver } from './receiver.ts'
import type { LockedRefunds } from './types.ts'

export type AttemptContext = Pick<Context, 'config' | 'encryption' | 'gateway' | 'log'>

export type SendPermit = {
  breaker: BreakerPermit
  /** Whether the lease would outlast a call that starts now. */
  isInTime: () => boolean
}

/** A recorded attempt, which may be sent once the record is committed. */
export type Attempt = {
  refundId: string
  attemptId: number
  prepared: PreparedCall<string | undefined>
  /** The refund before the attempt, which is restored if no byte was written, and after it was recorded. */
  before: RefundRow
  recorded: RefundRow
  snapshotCallId: number
  /** The receiver's account number, masked in whatever the gateway answers. */
  accountNumber: string | undefined
  permit: SendPermit
}

export type SentAttempt = { attempt: Attempt; call: GatewayCall<string | undefined> }

/** The parts of a refund that are approved: how much money goes where, and for whom. */
export type ApprovedContent = Pick<
  RefundRow,
  'merchantCode' | 'refundId' | 'paymentId' | 'amount' | 'reason' | 'onBehalfOf'
>

/** Formats what is approved, for a fingerprint. */
export function formatApproved(
  { merchantCode, refundId, paymentId, amount, reason, onBehalfOf }: ApprovedContent,
  receiver: Receiver | undefined,
): string {
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  const value = shortenAmount(amount)
  return JSON.stringify([
    ...['approved', merchantCode, refundId, paymentId],
    ...[value, to ?? null, reason, onBehalfOf],
  ])
}

/** Whether a refund that needed approval is what was approved. One that is not, and was never sent, fails. */
export function isAsApproved(
  { encryption, log }: Pick<AttemptContext, 'encryption' | 'log'>,
  draft: RefundDraft,
  receiver: Receiver | undefined,
): boolean {
  const { merchantCode, refundId, status, needsApproval } = draft.now
  const { approvedFingerprint: value, approvedFingerprintKeyId: keyId } = draft.now
  if (!needsApproval) return true
  const isStored = value !== null && keyId !== null
  const checked = isStored
    ? encryption.checkFingerprint(formatApproved(draft.now, receiver), { value, keyId })
    : 'different'
  if (checked === 'same') return true
  log.error({ merchantCode, refundId, checked }, 'refund not sent: it is not what was approved')
  if (checked === 'different' && status === 'pending') {
    failCheck(draft, 'approval_mismatch', 'it has changed since it was approved')
  }
  return false
}

/**
 * Locks the account's hold for a commit that may record an attempt, before any other lock. A hold that is being set
 * waits for such commits, and those that begin later see it. Commits do not block each other, nor the call rate's
 * update of the same row.
 */
export async function lockHold(tx: Tx, merchantCode: string): Promise<void> {
  await tx`select from merchant_accounts where merchant_code = ${merchantCode} for key share`
}

const PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 'k')
const REFUND = byKey('r', ['merchant_code', 'refund_id'], 'k')

/**
 * The SQL condition that nothing of `k` (`merchant_code`, `payment_id`, `refund_id`) is held: neither the account, the
 * payment nor the refund. It counts only in a statement that starts after `lockHold`.
 */
export const NOT_HELD_SQL = `(
    select m.hold from merchant_accounts as m where m.merchant_code = k.merchant_code) is null
  and (select p.hold from payments as p where ${PAYMENT} limit 1) is null
  and (select r.hold from refunds as r where ${REFUND} limit 1) is null`

/**
 * Records an attempt for at most one refund that may be sent now, in the commit that applied the snapshot, and fails
 * pending refunds that can no longer be sent. While the outcome of an attempt is unknown, no other refund of its
 * payment is sent.
 * @returns the attempt to send once the commit is done; undefined when there is nothing to send
 */
export async function prepareAttempt(
  ctx: AttemptContext,
  tx: Tx,
  locked: LockedRefunds,
  snapshot: SnapshotRef,
  permit: SendPermit,
): Promise<Attempt | undefined> {
  for (const { draft, payment } of chooseSendable(locked, snapshot, ctx.config)) {
    const { surplus, attempts } = draft.now
    const isFirst = attempts === 0
    if (isFirst && !(await isInSameCurrency(tx, draft))) continue
    if (isFirst && surplus && !(await isStillSurplus(ctx, tx, draft, locked, snapshot))) continue
    const attempt = await recordAttempt(ctx, tx, { draft, payment }, snapshot, permit)
    if (attempt) return attempt
  }
  return undefined
}

/**
 * Whether the refund is in the currency by which caps and the approval were judged or, if none was verified, in which
 * it was requested. If a verified notification has named another currency since, it fails, because nobody knows which
 * was meant.
 */
async function isInSameCurrency(tx: Tx, draft: RefundDraft): Promise<boolean> {
  const { merchantCode, transactionId, capCurrency, requestedCurrency } = draft.now
  const currency = capCurrency ?? requestedCurrency
  if (currency === null) return true
  const [other] = await tx<{ currency: string }[]>`
    select currency from (
      select * from ipn_events as e
      where e.merchant_code = ${merchantCode} and e.transaction_id = ${transactionId} offset 0) as e
    where verdict = 'verified' and reading = 1 and upper(btrim(currency)) <> ${currency} limit 1`
  if (!other) return true
  const message = `it was requested in ${currency}, and the gateway has notified ${other.currency} since`
  failCheck(draft, 'currency_changed', message)
  return false
}

/** @returns undefined when it cannot be sent under this lease, is held, or its receiver cannot be decrypted */
async function recordAttempt(
  ctx: AttemptContext,
  tx: Tx,
  { draft, payment }: Sendable,
  snapshot: SnapshotRef,
  permit: SendPermit,
): Promise<Attempt | undefined> {
  const before = draft.now
  const { merchantCode, refundId, paymentId, amount } = before
  const receiver = readReceiver(ctx, before)
  if (before.receiver && !receiver) return undefined
  if (!isAsApproved(ctx, draft, receiver)) return undefined
  const wanted = { merchantCode, refundId, paymentId, amount, receiver }
  const prepared = ctx.gateway.prepareRefund(wanted)
  const recorded = await insertAttempt(ctx, tx, before, prepared.bodyHmac, snapshot)
  if (!recorded) return undefined
  const { attemptId, recordedAt } = recorded
  startAttempt(draft, payment, { recordedAt, callId: snapshot.callId })
  const accountNumber = receiver?.accountNumber
  const recording = { attemptId, before, recorded: draft.now, snapshotCallId: snapshot.callId }
  return { refundId, ...recording, prepared, accountNumber, permit }
}

/** @returns undefined when there is no receiver, or it cannot be decrypted, which is logged */
function readReceiver(
  { encryption, log }: Pick<AttemptContext, 'encryption' | 'log'>,
  { merchantCode, refundId, receiver: encrypted }: RefundRow,
): Receiver | undefined {
  if (!encrypted) return undefined
  // Without it the refund stays pending: a QR payment cannot be refunded without its receiver.
  try {
    const receiver = decryptReceiver(encryption, encrypted, 'receiver', refundId)
    if (receiver) return receiver
    log.error(
      { merchantCode, refundId },
      'refund not sent: its receiver was encrypted with another DATA_ENCRYPTION_KEY; restart with that key as DATA_ENCRYPTION_KEY_PREVIOUS to send it',
    )
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    log.info({ merchantCode, refundId }, 'refund not sent yet: its data key is being read')
  }
  return undefined
}

/**
 * @returns undefined when the lease is not long enough to send, when the account, the payment or the refund is held, or
 *   when nothing is sent because the database may have lost commits
 */
async function insertAttempt(
  { config }: Pick<AttemptContext, 'config'>,
  tx: Tx,
  { merchantCode, transactionId, paymentId, refundId }: RefundRow,
  { value, keyId }: BodyHmac,
  { callId }: SnapshotRef,
): Promise<{ attemptId: number; recordedAt: string } | undefined> {
  // The lease must outlast the call, or another worker could send while this call is in flight.
  const [row] = await tx<{ attemptId: number; recordedAt: string }[]>`
    with sending as materialized (select ${tx.unsafe(MAY_SEND_SQL)} as may), recorded as (
    insert into refund_attempts (merchant_code, refund_id, body_hmac, body_key_id, snapshot_call_id, recorded_at)
    select k.merchant_code, k.refund_id, ${value}, ${keyId}, ${callId}, clock_timestamp()
    from transactions as t join (
      select ${merchantCode}::text as merchant_code, ${paymentId}::text as payment_id,
        ${refundId}::uuid as refund_id) as k using (merchant_code)
    where t.merchant_code = ${merchantCode} and transaction_id = ${transactionId} and lease_id is not null
      and due_at > clock_timestamp() + ${config.GATEWAY_TIMEOUT_MS} * interval '1 millisecond'
      and ${tx.unsafe(NOT_HELD_SQL)} and (select may from sending)
    returning id, recorded_at)
    select id as "attemptId", recorded_at::text as "recordedAt" from recorded`
  return row
}

/**
 * Sends a refund whose attempt is recorded and committed, once. Never rejects. A worker that stalled since sends
 * nothing: its lease may expire during the call, and the next worker would send as well.
 * @param signal cuts the call short when the process stops
 */
export async function sendAttempt(attempt: Attempt, signal: AbortSignal): Promise<SentAttempt> {
  const { prepared, permit, accountNumber } = attempt
  if (permit.isInTime()) {
    const call = await prepared.send(signal, permit.breaker)
    return { attempt, call: maskCall(call, accountNumber) }
  }
  permit.breaker.release()
  const reason = 'the lease would have expired during the call'
  const record = { command: 'REFUND' as const, bodyHmac: prepared.bodyHmac, durationMs: 0 }
  return {
    attempt,
    call: {
      outcome: { kind: 'unavailable', reason },
      record: { ...record, httpStatus: undefined },
    },
  }
}
