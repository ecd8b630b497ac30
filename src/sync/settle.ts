import postgres from 'postgres'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import type { Call } from '../gateway/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import { applyPayments, ForeignPaymentError, lockKnown } from '../payments/apply.ts'
import { type Attempt, type EndedAttempt, recordAttempt } from '../refunds/send.ts'
import {
  bringUpRefunds,
  type RefundsAtHand,
  type Snapshot,
  saveRefunds,
} from '../refunds/settle.ts'
import { isOver } from '../refunds/transitions.ts'
import { type PaymentFacts, summarisePayments } from '../transactions/state.ts'
import type { Claim } from './claim.ts'
import { endClaim, LOST, lockLeased, recordCall, type Settled } from './lease.ts'
import type { QueryEnd } from './schedule.ts'

/** A refund's attempt was recorded instead of ending the claim: send it, then `settleRefund`. */
export type Sending = { attempt: Attempt; end: QueryEnd }

/** Not final by documented meaning: waiting for the payer, and processing. */
const OPEN_CODES = ['9', '99']

/**
 * Writes what a query brought, in one commit: the call, the payments, the refunds, the changes, the sum,
 * and when to ask next, or which refund to send now under the same lease. Nothing is written when the lease went to somebody else meanwhile. An answer that
 * cannot be true, or that the database refuses, counts as none: it is tried again and abandoned in the end.
 * @param sentAfterMs from `claim.claimedAt` to the sending, by the monotonic clock
 */
export async function settleQuery(
  ctx: Context,
  claim: Claim,
  call: Call<ListedPayment[]>,
  sentAfterMs: number,
): Promise<Settled | Sending> {
  try {
    return await ctx.sql.begin((tx) => settle(ctx, tx, claim, call, sentAfterMs))
  } catch (error) {
    const reason = explainUnusable(error)
    if (reason === undefined) throw error
    const { merchantCode, transactionId } = claim
    ctx.log.error({ err: error, merchantCode, transactionId }, 'an answer could not be stored')
    const outcome = { kind: 'unknown' as const, reason }
    return await ctx.sql.begin((tx) => settle(ctx, tx, claim, { ...call, outcome }, sentAfterMs))
  }
}

function explainUnusable(error: unknown): string | undefined {
  if (error instanceof ForeignPaymentError) return error.message
  const refused = error instanceof postgres.PostgresError
  return refused ? `the database refused the answer (${error.code})` : undefined
}

async function settle(
  ctx: Context,
  tx: Tx,
  claim: Claim,
  call: Call<ListedPayment[]>,
  sentAfterMs: number,
): Promise<Settled | Sending> {
  const row = await lockLeased(tx, claim, sentAfterMs)
  if (!row) return LOST
  // Sent together, run one after the other.
  const [callId, known] = await Promise.all([
    recordCall(tx, claim, call, row.asOf),
    lockKnown(tx, claim),
  ])
  const { outcome } = call
  const listed = outcome.kind === 'answered' && row.newer ? outcome.value : undefined
  const snapshot = listed && { asOf: row.asOf, callId }
  const applied = snapshot && (await applyPayments(tx, claim, listed, snapshot, known))
  const hand = await bringUpRefunds(ctx, tx, claim, { snapshot })
  const maySend = hand && snapshot && !ctx.stopping.aborted
  const attempt = maySend ? await recordAttempt(ctx, tx, hand, snapshot) : undefined
  const refundsChanged = hand
    ? await saveRefunds(ctx, tx, hand.works, attempt === undefined)
    : false

  if (applied || refundsChanged) {
    const payments = applied?.payments ?? listFacts(hand)
    const changed = refundsChanged || applied?.changed === true
    await summariseTransaction(tx, claim, { payments, hand, changed, snapshot, state: row.state })
  }
  const end = awaitGrowth(judgeEnd(call, row.newer, applied?.payments ?? []), hand)
  return attempt ? { attempt, end } : await endClaim(ctx, tx, claim, end)
}

/**
 * Writes how a refund's attempt ended, with the notifications that came meanwhile, and ends the claim.
 * When the lease was lost nothing is written: whoever has it now finds the attempt interrupted.
 * @param end what the query before the attempt meant for the schedule
 */
export async function settleRefund(
  ctx: Context,
  claim: Claim,
  ended: EndedAttempt,
  end: QueryEnd,
): Promise<Settled> {
  return await ctx.sql.begin(async (tx) => {
    const row = await lockLeased(tx, claim, 0)
    if (!row) return LOST
    const hand = await bringUpRefunds(ctx, tx, claim, { ended })
    const next = awaitGrowth(end, hand)
    if (hand) {
      const changed = await saveRefunds(ctx, tx, hand.works, false)
      const facts = {
        payments: listFacts(hand),
        hand,
        changed,
        snapshot: undefined,
        state: row.state,
      }
      await summariseTransaction(tx, claim, facts)
    }
    return await endClaim(ctx, tx, claim, next)
  })
}

/** What the transaction adds up to now, with a change where its state moved. */
async function summariseTransaction(
  tx: Tx,
  { merchantCode, transactionId }: Claim,
  {
    payments,
    hand,
    changed,
    snapshot,
    state,
  }: {
    payments: readonly PaymentFacts[]
    hand: RefundsAtHand | undefined
    changed: boolean
    snapshot: Snapshot | undefined
    state: string
  },
): Promise<void> {
  const summary = summarisePayments(payments)
  if (summary.state !== state) {
    await tx`
      insert into changes (merchant_code, transaction_id, field, before, after, call_id, cause)
      values (${merchantCode}, ${transactionId}, 'state', ${state}, ${summary.state},
        ${snapshot?.callId ?? null}, 'query')`
  }
  const refundsOpen = hand?.works.some((work) => !isOver(work)) ?? false
  await tx`
    update transactions set
      state = ${summary.state}, final = ${summary.final && !refundsOpen},
      paid_amount = ${summary.paidAmount}, refunded_amount = ${summary.refundedAmount},
      duplicate_payment = ${summary.duplicatePayment}, as_of = coalesce(${snapshot?.asOf ?? null}, as_of),
      version = version + ${changed ? 1 : 0},
      updated_at = case when ${changed} then now() else updated_at end
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
}

/** What the query means for the schedule. Refunds have their own due times beside it. */
function judgeEnd(
  { outcome }: Call<ListedPayment[]>,
  newer: boolean,
  payments: readonly (PaymentFacts & { missing: boolean })[],
): QueryEnd {
  if (outcome.kind === 'rejected') {
    const open = OPEN_CODES.includes(outcome.code)
    return { kind: open ? 'open' : 'failed', why: `code ${outcome.code}: ${outcome.message}` }
  }
  if (outcome.kind !== 'answered') return { kind: 'failed', why: outcome.reason }
  if (!newer) return { kind: 'overtaken' }
  const { final, state } = summarisePayments(payments)
  if (payments.some(({ missing }) => missing)) {
    return { kind: 'open', why: 'a payment is not listed any more' }
  }
  return final ? { kind: 'final' } : { kind: 'open', why: `${state}, not final` }
}

/** A refund that happened shows in the payment's sum sooner or later: until it does, the sum is not settled. */
function awaitGrowth(end: QueryEnd, hand: RefundsAtHand | undefined): QueryEnd {
  if (end.kind !== 'final' || !hand) return end
  const unseen =
    hand.works.some(({ now }) => now.status === 'succeeded' && !now.matched) ||
    hand.payments.some(({ foreign }) => foreign.some(({ matched }) => !matched))
  return unseen ? { kind: 'open', why: 'a refund does not show in its payment yet' } : end
}

function listFacts(hand: RefundsAtHand | undefined): PaymentFacts[] {
  return (hand?.payments ?? []).map(({ status, amount, refundedNow }) => ({
    status,
    amount,
    refundedAmount: refundedNow,
  }))
}
