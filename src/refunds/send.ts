import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import type { Call, Outcome, PreparedCall } from '../gateway/client.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { Snapshot } from '../payments/apply.ts'
import { countRefundable } from '../payments/refundable.ts'
import { maskAccount, openReceiver } from './receiver.ts'
import type { RefundRow, RefundWork } from './rows.ts'
import type { PaymentAtHand, RefundsAtHand } from './settle.ts'
import { isDue, mayRepeat, move, NO_FAILURE } from './transitions.ts'

/** An attempt that is recorded and whose bytes may leave once the record is committed. */
export type Attempt = {
  refundId: string
  attemptId: number
  prepared: PreparedCall<string | undefined>
  /** The refund before the attempt: what it is again if not a byte was written. */
  before: RefundRow
  /** The receiver's account number: the gateway's message may quote it, and it is not to be kept. */
  account: string | undefined
}

/** An attempt of ours and how it ended. */
export type EndedAttempt = { attempt: Attempt; call: Call<string | undefined> }

/**
 * Picks at most one refund that may be sent now and records its attempt, in the commit that applied
 * the snapshot. One refund of a payment is sent at a time: an attempt whose end is not known blocks
 * every other of that payment.
 * @returns undefined when there is nothing to send
 */
export async function recordAttempt(
  ctx: Context,
  tx: Tx,
  { works, payments, unexplained }: RefundsAtHand,
  snapshot: Snapshot,
): Promise<Attempt | undefined> {
  for (const payment of payments) {
    const own = works.filter(({ now }) => now.paymentId === payment.paymentId)
    const doubtful = own.find(({ now }) => now.status === 'unknown')
    const quiet = unexplained.get(payment.paymentId) === '0'
    if (doubtful) {
      const fits = findObstacle(payment, own, doubtful) === undefined
      if (isDue(doubtful) && quiet && fits && mayRepeat(doubtful.now, ctx.config)) {
        const attempt = await writeAttempt(ctx, tx, doubtful, { snapshot, payment, own, quiet })
        if (attempt) return attempt
      }
      continue
    }
    // What the doubtful one blocked is taken up in the commit that ends the doubt, not at its own time.
    const unblocked = own.some(
      ({ before }) => before.status === 'unknown' || before.status === 'sending',
    )
    for (const work of own) {
      if (work.now.status !== 'pending' || !(isDue(work) || unblocked)) continue
      if (!ctx.config.REFUNDS_ENABLED && work.now.attempts === 0) continue
      if (!work.now.requestedBeforeSnapshot) continue
      const obstacle = findObstacle(payment, own, work)
      if (obstacle === undefined) {
        const attempt = await writeAttempt(ctx, tx, work, { snapshot, payment, own, quiet })
        if (attempt) return attempt
        continue
      }
      const mayClear = mightBeCountedTwice(own, work, obstacle, unexplained.get(payment.paymentId))
      if (mayClear && work.now.sinceRequestedMs < ctx.config.REFUND_RESOLVE_FOR_MS) continue
      const { reason, message } = obstacle
      const cause = {
        words: `check before sending: ${message}; nothing was sent`,
        callId: snapshot.callId,
      }
      move(work, 'failed', cause, {
        failureSource: 'service',
        failureReason: reason,
        failureMessage: message,
      })
    }
  }
  return undefined
}

type Obstacle = { reason: string; message: string; left?: string }

/**
 * Growth that nobody explains yet may be that of refunds still reserved: then their amount is counted
 * twice for the moment, and what is short now may be there once they are matched. Nothing is sent, but
 * nothing is given up either.
 */
function mightBeCountedTwice(
  own: readonly RefundWork[],
  { now: { amount } }: RefundWork,
  { left }: Obstacle,
  unexplained = '0',
): boolean {
  if (left === undefined) return false
  const open = own.filter(({ now }) => now.status === 'accepted' || now.status === 'unknown')
  const reserved = addAmounts(open.map(({ now }) => now.amount))
  const twice = compareAmounts(reserved, unexplained) < 0 ? reserved : unexplained
  return compareAmounts(addAmounts([left, twice]), amount) >= 0
}

/** What the newest snapshot has against the refund; the balance is counted without itself. */
function findObstacle(
  payment: PaymentAtHand,
  own: readonly RefundWork[],
  work: RefundWork,
): Obstacle | undefined {
  if (payment.status !== 'SUCCESS' || payment.missing) {
    const message = payment.missing
      ? 'the payment is not listed any more'
      : `the payment is ${payment.status}`
    return { reason: 'payment_not_refundable', message }
  }
  const others = own.filter((one) => one !== work).map(({ now }) => now)
  const left = countRefundable({
    amount: payment.amount,
    refundedNow: payment.refundedNow,
    refundedAtFirst: payment.refundedAtFirst,
    matched: [
      ...others.filter(({ matched }) => matched).map(({ amount }) => amount),
      ...payment.foreign.filter(({ matched }) => matched).map(({ amount }) => amount),
    ],
    // A refund made elsewhere is gone once it is notified, though the gateway's own sum may lag.
    reserved: [
      ...others.filter(({ matched, status }) => !matched && status !== 'failed'),
      ...payment.foreign.filter(({ matched }) => !matched),
    ].map(({ amount }) => amount),
  })
  if (compareAmounts(left, work.now.amount) >= 0) return undefined
  return { reason: 'exceeds_refundable', message: `only ${left} is left to refund`, left }
}

async function writeAttempt(
  ctx: Context,
  tx: Tx,
  work: RefundWork,
  {
    snapshot,
    payment,
    own,
    quiet,
  }: { snapshot: Snapshot; payment: PaymentAtHand; own: readonly RefundWork[]; quiet: boolean },
): Promise<Attempt | undefined> {
  const { merchantCode, transactionId, refundId, paymentId, amount, receiver: sealed } = work.now
  const receiver = sealed ? openReceiver(ctx.sealer, sealed, refundId) : undefined
  if (sealed && !receiver) {
    // It keeps its place: with the right key in the settings it is sent, without a receiver never.
    ctx.log.error(
      { merchantCode, refundId },
      'a refund is not sent: its receiver was stored with another DATA_ENCRYPTION_KEY than that of the settings',
    )
    return undefined
  }
  const order = { merchantCode, refundId, paymentId, amount, receiver }
  const prepared = ctx.gateway.prepareRefund(order)
  // The lease must outlast the call, or somebody else could begin while its bytes are on their way.
  const [row] = await tx<{ attemptId: number; recordedAt: string }[]>`
    insert into refund_attempts (merchant_code, refund_id, body_sha256, snapshot_call_id, recorded_at)
    select merchant_code, ${refundId}, ${prepared.bodySha256}, ${snapshot.callId}, clock_timestamp()
    from transactions
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId} and lease_id is not null
      and due_at > clock_timestamp() + ${ctx.config.GATEWAY_TIMEOUT_MS} * interval '1 millisecond'
    returning id as "attemptId", recorded_at::text as "recordedAt"`
  if (!row) return undefined
  const before = work.now
  const unseen =
    own.some(({ now }) => now.status === 'succeeded' && !now.matched) ||
    payment.foreign.some(({ matched }) => !matched)
  move(
    work,
    'sending',
    { words: 'attempt recorded', callId: snapshot.callId },
    {
      attempts: before.attempts + 1,
      refundedBefore: unseen ? payment.refundedNow : before.refundedBefore,
      firstSentAt: before.firstSentAt ?? row.recordedAt,
      lastSentAt: row.recordedAt,
      sentAmidGrowth: before.firstSentAt === null ? !quiet : before.sentAmidGrowth,
    },
  )
  const account = receiver?.accountNumber
  return { refundId, attemptId: row.attemptId, prepared, before, account }
}

/** Writes how our own attempt ended; the caller holds the lease under which it was made. */
export async function endAttempt(
  tx: Tx,
  work: RefundWork,
  { attempt: { attemptId, before, account }, call }: EndedAttempt,
): Promise<void> {
  const { record } = call
  const outcome = hideAccount(call.outcome, account)
  const code = outcome.kind === 'rejected' ? outcome.code : outcome.kind === 'answered' ? '0' : null
  const message = 'reason' in outcome ? outcome.reason : outcome.message
  const [row] = await tx<{ endedAt: string }[]>`
    update refund_attempts set outcome = ${outcome.kind}, http_status = ${record.httpStatus ?? null},
      code = ${code}, message = ${message}, duration_ms = ${record.durationMs}
    where id = ${attemptId} and merchant_code = ${work.now.merchantCode}
    returning clock_timestamp()::text as "endedAt"`
  if (!row || work.now.status !== 'sending')
    throw new Error(`attempt ${attemptId} is not under way`)
  switch (outcome.kind) {
    case 'answered': {
      const cause = { words: 'the gateway accepted it (code 0)' }
      move(work, 'accepted', cause, { gatewayRefundId: outcome.value ?? null, ...NO_FAILURE })
      break
    }
    case 'rejected':
      takeRefusal(work, outcome, row.endedAt)
      break
    case 'unavailable': {
      const { attempts, firstSentAt, lastSentAt } = before
      const cause = { words: `not a byte was sent: ${outcome.reason}` }
      move(work, before.status, cause, { attempts, firstSentAt, lastSentAt })
      break
    }
    case 'unknown':
      move(work, 'unknown', { words: `no answer: ${outcome.reason}` }, { unanswered: true })
  }
}

function hideAccount<T>(outcome: Outcome<T>, account: string | undefined): Outcome<T> {
  if (account === undefined || !('message' in outcome)) return outcome
  return { ...outcome, message: outcome.message.replaceAll(account, maskAccount(account)) }
}

/**
 * Whoever was sending lost the lease or died: its bytes may have left, and nobody heard an answer.
 * The caller holds the lease, so nobody is sending now.
 */
export async function endInterruption(tx: Tx, work: RefundWork): Promise<void> {
  if (work.now.status !== 'sending') return
  const words = 'the attempt was interrupted: its bytes may have left'
  move(work, 'unknown', { words }, { unanswered: true })
  await tx`
    update refund_attempts set outcome = 'unknown', message = 'interrupted'
    where merchant_code = ${work.now.merchantCode} and refund_id = ${work.now.refundId} and outcome is null`
}

/** A code proves something only about the first attempt, and even then not at once. */
function takeRefusal(
  work: RefundWork,
  { code, message }: { code: string; message: string },
  refusedAt: string,
): void {
  const words = `the gateway answered code ${code}${message ? `: ${message}` : ''}`
  const first = work.now.attempts === 1
  move(
    work,
    'unknown',
    { words },
    {
      ...(first ? { refusedCode: code, refusedAt } : {}),
      failureSource: 'gateway',
      failureReason: code,
      failureMessage: message,
    },
  )
}
