import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endAttempt, endInterrupted, saveInterrupted } from './answer.ts'
import {
  type Attempt,
  type AttemptContext,
  prepareAttempt,
  type SendPermit,
  type SentAttempt,
} from './attempt.ts'
import { applyDeadlines, type RefundSettings, type SendingTurn } from './deadlines.ts'
import { countExternal, hasNewsOf, nameNotified, releaseOtherReadings } from './external.ts'
import { isShownByPayment } from './lifecycle.ts'
import { lockRefunds } from './lock-refunds.ts'
import { type MatchedPayments, matchPayments, rejudgeInferred } from './match.ts'
import { explainMayHaveMoved } from './measure.ts'
import { handleNotifications, readDetails } from './notifications.ts'
import { type SavedRefunds, saveRefunds } from './save.ts'
import type {
  ExternalChange,
  ExternalRefund,
  Finding,
  LockedPayment,
  LockedRefunds,
  Snapshot,
} from './types.ts'

export type RefundsContext = AttemptContext & Pick<Context, 'lifecycle'>

export type ReconcileInput = {
  /** The applied answer; undefined when there was none, or a newer one is stored. */
  snapshot: Snapshot | undefined
  /** The query was answered, even if the answer was not applied. */
  answered: boolean
  /** Permission to send a refund, or how long the account's refund calls are paused (ms). */
  sending: SendPermit | { pausedMs: number }
}

export type ReconciledRefunds = SavedRefunds &
  Pick<LockedRefunds, 'drafts' | 'payments'> & {
    externalChanges: readonly ExternalChange[]
    /** How long until another refund that no growth shows is reported (ms). */
    askAgainInMs: number | undefined
  }

/**
 * Reconciles the refunds of a transaction with the gateway's answer, in the commit that applied it, and records an
 * attempt for at most one of them. The caller holds the transaction's row, and its lease unless nothing may be sent.
 * @returns also the `attempt` to send once the commit is done, if any
 */
export async function reconcileRefunds(
  ctx: RefundsContext,
  tx: Tx,
  key: TransactionKey,
  { snapshot, answered, sending }: ReconcileInput,
): Promise<ReconciledRefunds & { attempt: Attempt | undefined }> {
  const locked = await lockRefunds(tx, key, snapshot?.asOf ?? null)
  for (const draft of locked.drafts) endInterrupted(draft)
  await saveInterrupted(tx, locked.drafts)
  readDetails(ctx, locked)
  const judged = judge(locked, snapshot, ctx.config)
  const maySend = snapshot && 'breaker' in sending && !ctx.lifecycle.stopping.aborted
  const attempt = maySend ? await prepareAttempt(ctx, tx, locked, snapshot, sending) : undefined
  const turn: SendingTurn =
    snapshot && 'pausedMs' in sending
      ? { answered, hadTurn: false, pausedMs: sending.pausedMs }
      : { answered, hadTurn: attempt === undefined }
  return { ...(await save(ctx, tx, key, locked, { turn, judged })), attempt }
}

/**
 * Records the result of an attempt and applies it to its refund, together with the notifications received meanwhile.
 * The caller holds the transaction's row.
 * @param isLeased the caller holds the lease under which the attempt was made, so other attempts were interrupted
 * @returns `busy` while another attempt of the refund is in progress, `gone` when the transaction has no such refund
 */
export async function recordAttemptResult(
  ctx: RefundsContext,
  tx: Tx,
  key: TransactionKey,
  sent: SentAttempt,
  isLeased: boolean,
): Promise<ReconciledRefunds | 'busy' | 'gone'> {
  const locked = await lockRefunds(tx, key, null)
  const own = locked.drafts.find(({ now }) => now.refundId === sent.attempt.refundId)
  if (!own) return 'gone'
  if (!(await endAttempt(tx, own, sent))) return 'busy'
  const others = isLeased ? locked.drafts.filter((draft) => draft !== own) : []
  for (const draft of others) endInterrupted(draft)
  await saveInterrupted(tx, others)
  readDetails(ctx, locked)
  const judged = judge(locked, undefined, ctx.config)
  // This gives no waiting refund its turn.
  return await save(ctx, tx, key, locked, { judged, turn: { hadTurn: false, answered: true } })
}

async function save(
  { config, log }: Pick<RefundsContext, 'config' | 'log'>,
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
  judged: Parameters<typeof saveRefunds>[4],
): Promise<ReconciledRefunds> {
  const saved = await saveRefunds(tx, config, key, locked, judged)
  for (const { now, missing } of locked.drafts) {
    if (!missing) continue
    const { merchantCode, refundId } = now
    log.error({ merchantCode, refundId, ...missing }, 'no rule for what happened to a refund')
  }
  const { drafts, payments, external } = locked
  const waits = listUnshown(locked, config).flatMap(({ inMs }) => (inMs > 0 ? [inMs] : []))
  const askAgainInMs = waits.length === 0 ? undefined : Math.min(...waits)
  const externalChanges = external.flatMap((one) => one.changes)
  return { ...saved, drafts, payments, externalChanges, askAgainInMs }
}

/**
 * Judges the refunds of a transaction. It changes only `locked`, and needs neither the database nor a clock.
 * @param snapshot the applied answer; undefined when there was none, or a newer one is stored
 */
export function judge(
  locked: LockedRefunds,
  snapshot: Snapshot | undefined,
  settings: RefundSettings,
): MatchedPayments {
  const { findings: notified, externalNotified } = judgeNotifications(locked, snapshot)
  const matched = snapshot
    ? matchPayments(locked, snapshot, settings)
    : { findings: [], rematched: [], externalChanged: false }
  const timedOut = locked.drafts.flatMap((draft) => {
    const { paymentId, refundId } = draft.now
    const mayHaveMoved = explainMayHaveMoved(locked, draft.now)
    const payment = locked.payments.find((one) => one.paymentId === paymentId)
    const shown = snapshot && payment && viewSnapshot(snapshot, payment)
    const disagreement = applyDeadlines(draft, { mayHaveMoved, snapshot: shown }, settings)
    return disagreement ? [{ ...disagreement, paymentId, refundId }] : []
  })
  const unshown = listUnshown(locked, settings).flatMap((one) =>
    one.inMs <= 0 ? [one.finding] : [],
  )
  return {
    findings: [...notified, ...matched.findings, ...timedOut, ...unshown],
    rematched: matched.rematched,
    externalChanged: externalNotified || matched.externalChanged,
  }
}

/** Handles notifications, and judges again what was inferred where they changed external refunds. */
function judgeNotifications(
  locked: LockedRefunds,
  snapshot: Snapshot | undefined,
): { findings: Finding[]; externalNotified: boolean } {
  const before = listCounted(locked)
  const findings = handleNotifications(locked)
  releaseOtherReadings(locked)
  countExternal(locked)
  for (const payment of locked.payments) {
    const isChanged = hasNewsOf(locked, payment.paymentId)
    const isMatchedNext = snapshot !== undefined && payment.listed
    if (isChanged && !isMatchedNext) rejudgeInferred(payment, locked.drafts)
  }
  return { findings, externalNotified: listCounted(locked) !== before }
}

/** Describes the external refunds that count, so that a change of them is noticed. */
function listCounted({ payments }: LockedRefunds): string {
  const describe = ({ id, amount, matched }: ExternalRefund) => `${id} ${amount} ${matched}`
  return payments.flatMap(({ external }) => external.map(describe)).join('\n')
}

/** What the snapshot shows about a payment; undefined where it does not list it. */
function viewSnapshot({ callId }: Snapshot, payment: LockedPayment) {
  const { unmatchedDelta } = payment
  return unmatchedDelta === undefined ? undefined : { ...payment, unmatchedDelta, callId }
}

const NO_GROWTH = 'no increase of the refunded amount shows it'
const NO_FALL = 'no decrease of the refunded amount shows it'

/**
 * Lists refunds that happened or came back, as the gateway or a person says, but that the refunded amount does not show.
 * A person is told in `inMs`: `REFUND_RESOLVE_FOR_MS` after ours was sent or decided, or another became known.
 */
function listUnshown(
  { drafts, external }: LockedRefunds,
  { REFUND_RESOLVE_FOR_MS: withinMs }: Pick<RefundSettings, 'REFUND_RESOLVE_FOR_MS'>,
): { finding: Finding; inMs: number }[] {
  const ours = drafts.filter(({ now }) => !isShownByPayment(now))
  const theirs = external.filter(({ now }) => now.outcome === null && !now.matched)
  return [
    ...ours.map(({ now }) => {
      const { refundId, paymentId, status } = now
      const isBack = status === 'returned'
      const sides = { ours: status, theirs: isBack ? NO_FALL : NO_GROWTH }
      const sinceMs = (isBack ? now.sinceResolvedMs : now.sinceSentMs) ?? now.sinceRequestedMs
      const kind = 'refund_without_growth' as const
      return { finding: { kind, ...sides, paymentId, refundId }, inMs: withinMs - sinceMs }
    }),
    ...theirs.map(({ now: { requestId, amount, paymentId, sinceSeenMs } }) => {
      const sides = { ours: NO_GROWTH, theirs: nameNotified(requestId, amount) }
      const kind = 'external_refund_unmatched' as const
      return { finding: { kind, ...sides, paymentId }, inMs: withinMs - sinceSeenMs }
    }),
  ]
}
