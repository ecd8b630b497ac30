import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { closeDiscrepancies, type Recorded, recordDiscrepancies } from '../discrepancies/record.ts'
import { addAmounts } from '../money.ts'
import type { Snapshot, TransactionKey } from '../payments/apply.ts'
import {
  type Attribution,
  attributeGrowth,
  type ForeignRefund,
  type OwnRefund,
} from './attribute.ts'
import { changesAnything, listClosings, pickKey } from './closings.ts'
import { type Finding, readUnhandled, takeNotifications } from './notifications.ts'
import {
  hasVisibleChange,
  lockRefunds,
  type RefundStatus,
  type RefundWork,
  saveRefund,
} from './rows.ts'
import { type EndedAttempt, endAttempt, endInterruption } from './send.ts'
import {
  endByTime,
  isDue,
  isOver,
  mayRepeat,
  move,
  NO_FAILURE,
  scheduleLook,
  startWork,
} from './transitions.ts'

/** The refunds of a transaction while a settling commit holds them. */
export type RefundsAtHand = {
  works: RefundWork[]
  payments: PaymentAtHand[]
  /** Growth of a payment that nobody explains, by payment; only with a snapshot. */
  unexplained: ReadonlyMap<string, string>
  /** Of refunds made elsewhere one came to light, or its growth: more or less of a payment is refundable. */
  foreignChanged: boolean
  /** Disagreements recorded for the first time. */
  found: Recorded[]
}

export type PaymentAtHand = {
  paymentId: string
  status: string
  missing: boolean
  amount: string
  refundedNow: string
  refundedAtFirst: string
  foreign: ForeignRefund[]
}

/**
 * Brings the refunds of a transaction up to date: the attempt that has just ended, interrupted ones,
 * notifications, growth (with a snapshot), time. The caller holds the transaction's lease and row; payments are locked before refunds.
 * Nothing is saved yet but what notifications leave behind: `saveRefunds` does.
 */
export async function bringUpRefunds(
  ctx: Context,
  tx: Tx,
  key: TransactionKey,
  {
    snapshot,
    changed = false,
    ended,
  }: {
    snapshot?: Snapshot | undefined
    /** The snapshot differs from the one before. */
    changed?: boolean | undefined
    ended?: EndedAttempt
  },
): Promise<RefundsAtHand> {
  // Sent together, run one after the other: payments are locked first.
  const [payments, rows, notifications, knownForeign] = await Promise.all([
    lockPayments(tx, key),
    lockRefunds(tx, key, snapshot?.asOf ?? null),
    readUnhandled(tx, key, snapshot?.asOf ?? null),
    readForeign(tx, key),
  ])
  const works = rows.map(startWork)
  for (const work of works) {
    if (ended && work.now.refundId === ended.attempt.refundId) await endAttempt(tx, work, ended)
    else await endInterruption(tx, work)
  }
  const findings = await takeNotifications(tx, key, works, notifications)
  const unexplained = new Map<string, string>()
  const explained: string[] = []
  const foreign = notifications.length > 0 ? await readForeign(tx, key) : knownForeign
  let foreignChanged = foreign.length > knownForeign.length
  if (snapshot) {
    for (const payment of payments) {
      payment.foreign = foreign.filter((one) => one.paymentId === payment.paymentId)
      const attribution = attributePayment(payment, works)
      findings.push(...takeAttribution(attribution, payment, works, snapshot))
      if (changed || changesAnything(attribution)) explained.push(payment.paymentId)
      await markForeign(tx, key, attribution.matchedForeign)
      foreignChanged ||= attribution.matchedForeign.length > 0
      payment.foreign = payment.foreign.map((one) => ({
        ...one,
        matched: one.matched || attribution.matchedForeign.includes(one.id),
      }))
      unexplained.set(payment.paymentId, attribution.unexplained)
    }
  }
  for (const work of works) {
    const { paymentId, refundId } = work.now
    const rest = unexplained.get(paymentId)
    const refundedNow = payments.find((one) => one.paymentId === paymentId)?.refundedNow
    const view =
      snapshot && rest !== undefined && refundedNow !== undefined
        ? {
            callId: snapshot.callId,
            unexplained: rest,
            refundedNow,
            inferred: sumInferred(works, paymentId),
          }
        : undefined
    const disagreement = endByTime(work, view, ctx.config)
    if (disagreement) findings.push({ ...disagreement, paymentId, refundId })
  }
  // Sent together, run one after the other: what is found again is open again.
  const [, found] = await Promise.all([
    closeDiscrepancies(tx, listClosings(key, works, explained)),
    recordDiscrepancies(
      tx,
      findings.map((one) => ({ ...one, ...pickKey(key) })),
    ),
  ])
  return { works, payments, unexplained, foreignChanged, found }
}

/**
 * Writes what was decided, and when to look again at each refund that is not over.
 * @param turn whether those that wait could have been sent in this commit; otherwise they stay due,
 *   or, while refunds of the account pause, come again when one of them may find out (ms). A query that
 *   had no answer takes them a step back
 * @returns whether anything a reader can see has changed
 */
export async function saveRefunds(
  ctx: Context,
  tx: Tx,
  works: readonly RefundWork[],
  turn: { had: boolean; answered: boolean; pausedMs?: number },
): Promise<boolean> {
  let changed = false
  for (const work of works) {
    const { now } = work
    const waits = now.status === 'pending' && work.moves.length === 0
    if (isOver(work)) {
      work.dueInMs = null
    } else if (waits && isUnblocked(works, now.paymentId)) {
      work.dueInMs = 0
    } else if (turn.pausedMs !== undefined && isDue(work) && couldBeSent(ctx, work)) {
      work.dueInMs = turn.pausedMs
    } else if (waits && turn.answered && !(turn.had && now.requestedBeforeSnapshot)) {
      // It stays due, or comes at its own time.
    } else if (work.moves.length > 0 || isDue(work)) {
      // News start the backoff anew; a repetition that changed nothing does not, nor one that never left.
      const news = work.moves.some(({ to }) => to === 'accepted') || now.attempts === 1
      const anew = work.moves.length > 0 && news && now.status !== 'pending'
      work.now = { ...now, polls: anew ? 1 : now.polls + 1 }
      work.dueInMs = scheduleLook(work, ctx.config)
    }
    // Once matched it is no longer reserved: more of the payment may be refundable.
    changed ||= hasVisibleChange(work) || work.before.matched !== work.now.matched
    await saveRefund(tx, work)
    if (isOver(work) && work.moves.length > 0) await planForgetting(ctx, tx, work)
  }
  return changed
}

/** Nothing but the pause keeps it from being looked at for sending. */
function couldBeSent({ config }: Context, { now, moves }: RefundWork): boolean {
  if (moves.length > 0) return false
  if (now.status === 'pending') return config.REFUNDS_ENABLED || now.attempts > 0
  return mayRepeat(now, config)
}

/** The attempt that kept others of the payment from being sent has come to an end in this commit. */
function isUnblocked(works: readonly RefundWork[], paymentId: string): boolean {
  const own = works.filter(({ now }) => now.paymentId === paymentId)
  const blocks = (status: RefundStatus) => status === 'unknown' || status === 'sending'
  const ended = own.some(({ before, now }) => blocks(before.status) && now.status !== 'pending')
  return ended && !own.some(({ now }) => blocks(now.status))
}

async function lockPayments(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<PaymentAtHand[]> {
  const rows = await tx<Omit<PaymentAtHand, 'foreign'>[]>`
    select payment_id as "paymentId", status, missing, amount, refunded_amount as "refundedNow",
      refunded_at_first as "refundedAtFirst"
    from payments where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
    order by payment_id for update`
  return rows.map((row) => ({ ...row, foreign: [] }))
}

function readForeign(tx: Tx, { merchantCode, transactionId }: TransactionKey) {
  return tx<(ForeignRefund & { paymentId: string })[]>`
    select f.request_id as id, f.payment_id as "paymentId", f.amount, f.matched
    from foreign_refunds f join payments p
      on p.merchant_code = f.merchant_code and p.payment_id = f.payment_id
    where p.merchant_code = ${merchantCode} and p.transaction_id = ${transactionId}
    order by f.first_seen_at, f.request_id for update of f`
}

function sumInferred(works: readonly RefundWork[], paymentId: string): string {
  const own = works.filter(({ now }) => now.paymentId === paymentId)
  return addAmounts(own.filter(({ now }) => now.inferred).map(({ now }) => now.amount))
}

function attributePayment(payment: PaymentAtHand, works: readonly RefundWork[]): Attribution {
  const own = works.filter(({ now }) => now.paymentId === payment.paymentId)
  return attributeGrowth({
    atFirst: payment.refundedAtFirst,
    now: payment.refundedNow,
    own: own.flatMap(({ now }): OwnRefund[] => {
      const { refundId: id, amount, matched, inferred, sentAmidGrowth } = now
      const sentBefore = now.sentBeforeSnapshot
      const facts = { id, amount, matched, inferred, sentBefore, sentAmidGrowth }
      if (now.status === 'succeeded')
        return [{ ...facts, standing: now.inferred ? 'done' : 'known' }]
      if (now.status !== 'accepted' && now.status !== 'unknown') return []
      return [{ ...facts, standing: now.failureCode === null ? 'open' : 'failing' }]
    }),
    foreign: payment.foreign,
    underReview: own.some(({ now }) => now.status === 'needs_review'),
  })
}

function takeAttribution(
  { matchedOwn, inferred, doubtful, unexplained }: Attribution,
  payment: PaymentAtHand,
  works: readonly RefundWork[],
  { callId }: Snapshot,
): Finding[] {
  for (const work of works) {
    const { refundId } = work.now
    if (matchedOwn.includes(refundId)) work.now = { ...work.now, matched: true }
    if (inferred.includes(refundId)) {
      const words = `the payment's refunded amount grew to ${payment.refundedNow}, which only this explains`
      move(work, 'succeeded', { words, callId }, { matched: true, inferred: true, ...NO_FAILURE })
    }
    if (doubtful.includes(refundId)) {
      const words =
        'the growth it was concluded from is gone, or belongs to a refund made elsewhere'
      move(work, 'needs_review', { words, callId }, { matched: false, inferred: false })
    }
  }
  if (unexplained === '0') return []
  const theirs = `refundedAmount ${payment.refundedNow}`
  const { paymentId } = payment
  return unexplained.startsWith('-')
    ? [
        {
          kind: 'refunded_amount_fell',
          ours: `${unexplained.slice(1)} more was explained`,
          theirs,
          paymentId,
        },
      ]
    : [{ kind: 'unexplained_growth', ours: `${unexplained} of it is nobody's`, theirs, paymentId }]
}

async function markForeign(
  tx: Tx,
  { merchantCode }: TransactionKey,
  requestIds: readonly string[],
) {
  if (requestIds.length === 0) return
  await tx`
    update foreign_refunds set matched = true
    where merchant_code = ${merchantCode} and request_id = any(${[...requestIds]}::text[]) and not matched`
}

/** The account number is needed for as long as the end could still be revised. */
export async function planForgetting(ctx: Context, tx: Tx, { now }: RefundWork): Promise<void> {
  if (now.status === 'needs_review') return
  await tx`
    update refunds
    set forget_receiver_at = now() + ${ctx.config.REFUND_CONFIRM_FAILED_MS}::float8 * interval '1 millisecond'
    where merchant_code = ${now.merchantCode} and refund_id = ${now.refundId}`
}
