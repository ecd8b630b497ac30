import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type {
  NewDiscrepancy,
  RecordedDiscrepancy,
  ResolvedDiscrepancy,
} from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import type { SnapshotRef } from '../payments/odd-readings.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endAttempt, endInterruptedAttempt, endLateAttempt } from './answer.ts'
import {
  type Attempt,
  type AttemptContext,
  prepareAttempt,
  type SendPermit,
  type SentAttempt,
} from './attempt.ts'
import { type LockedRefunds, lockRefunds, refreshExternalRefunds } from './case.ts'
import { applyDeadlines } from './deadlines.ts'
import { type SendingTurn, saveDrafts } from './draft.ts'
import { recordExternalChanges } from './events.ts'
import type { RefundDraft } from './lifecycle.ts'
import { type MatchedPayments, matchPayments, rejudgeInferred } from './match.ts'
import { handleNotifications } from './notifications.ts'
import { explainMayHaveMoved } from './obstacle.ts'
import { releaseOtherReadings } from './record-external.ts'
import type { ExternalChange, Finding, LockedPayment } from './types.ts'

/** Finds the external refunds that no growth has shown within `REFUND_RESOLVE_FOR_MS`. */
export function findUnmatchedExternal(
  payments: readonly LockedPayment[],
  { REFUND_RESOLVE_FOR_MS }: Pick<Config, 'REFUND_RESOLVE_FOR_MS'>,
): Finding[] {
  return payments.flatMap(({ paymentId, external }) =>
    external
      .filter(({ matched, sinceSeenMs }) => !matched && sinceSeenMs >= REFUND_RESOLVE_FOR_MS)
      .map(({ id, amount }) => ({
        kind: 'external_refund_unmatched',
        ours: 'no increase of the refunded amount shows it',
        theirs: `success notification, request ${id}, amount ${amount}`,
        paymentId,
      })),
  )
}

/** The context needed to reconcile refunds. */
export type RefundsContext = AttemptContext & Pick<Context, 'stopping'>

/** What refunds need to know of a query's answer. */
export type ReconcileInput = {
  /** The applied answer; undefined when there was none, or a newer one is stored. */
  snapshot: SnapshotRef | undefined
  /** The snapshot differs from the one before. */
  changed: boolean
  /** The query was answered, whether the answer was applied or not. */
  answered: boolean
  /** Permission to send a refund, or how long the account's refund calls are paused (ms). */
  sending: SendPermit | { pausedMs: number }
}

/** The refunds of a transaction as the commit leaves them. */
export type ReconciledRefunds = {
  drafts: readonly RefundDraft[]
  payments: readonly LockedPayment[]
  /** Something visible to readers has changed. */
  changed: boolean
  /** Discrepancies recorded for the first time. */
  found: RecordedDiscrepancy[]
  externalChanges: readonly ExternalChange[]
}

/**
 * Reconciles the refunds of a transaction with the gateway's answer, in the commit that applied it: ends
 * interrupted attempts, applies notifications, matches the refunded delta, and applies deadlines. Then it
 * records an attempt for at most one refund. The caller holds the transaction's lease and row.
 * @returns with the `attempt` to send once the commit is done, if any
 */
export async function reconcileRefunds(
  ctx: RefundsContext,
  tx: Tx,
  key: TransactionKey,
  { snapshot, changed, answered, sending }: ReconcileInput,
): Promise<ReconciledRefunds & { attempt: Attempt | undefined }> {
  const locked = await lockRefunds(tx, key, snapshot?.asOf ?? null)
  for (const draft of locked.drafts) await endInterruptedAttempt(tx, draft)
  const judged = await judgeRefunds(ctx, tx, key, locked, { snapshot, changed })
  const maySend = snapshot && 'breaker' in sending && !ctx.stopping.aborted
  const attempt = maySend ? await prepareAttempt(ctx, tx, locked, snapshot, sending) : undefined
  const turn: SendingTurn =
    snapshot && 'pausedMs' in sending
      ? { answered, had: false, pausedMs: sending.pausedMs }
      : { answered, had: attempt === undefined }
  return { ...(await saveRefunds(ctx, tx, locked, turn, judged)), attempt }
}

/**
 * Records the result of an attempt and applies it to its refund, together with the notifications received in
 * the meantime. The caller holds the lease under which the attempt was made.
 * @returns `moved` when the refund no longer belongs to the transaction
 */
export async function recordAttemptResult(
  ctx: RefundsContext,
  tx: Tx,
  key: TransactionKey,
  sent: SentAttempt,
): Promise<ReconciledRefunds | 'moved'> {
  const locked = await lockRefunds(tx, key, null)
  if (!locked.drafts.some(({ now }) => now.refundId === sent.attempt.refundId)) return 'moved'
  for (const draft of locked.drafts) {
    if (draft.now.refundId !== sent.attempt.refundId) await endInterruptedAttempt(tx, draft)
    else if (draft.now.status === 'sending') await endAttempt(tx, draft, sent)
    // A failover may keep the lease and lose the record of the attempt.
    else await endLateAttempt(tx, draft, sent)
  }
  const judged = await judgeRefunds(ctx, tx, key, locked, { snapshot: undefined, changed: false })
  return await saveRefunds(ctx, tx, locked, { had: false, answered: true }, judged)
}

/**
 * Records the result of an attempt whose lease has ended since. The caller holds the transaction's row.
 * @returns `busy` while another attempt of the refund is in progress, `gone` when the refund's row is lost
 */
export async function recordLateResult(
  ctx: RefundsContext,
  tx: Tx,
  key: TransactionKey,
  sent: SentAttempt,
): Promise<ReconciledRefunds | 'busy' | 'gone'> {
  const locked = await lockRefunds(tx, key, null)
  const draft = locked.drafts.find(({ now }) => now.refundId === sent.attempt.refundId)
  if (!draft) return 'gone'
  if (!(await endLateAttempt(tx, draft, sent))) return 'busy'
  const judged = await judgeRefunds(ctx, tx, key, locked, { snapshot: undefined, changed: false })
  return await saveRefunds(ctx, tx, locked, { had: false, answered: true }, judged)
}

type JudgedRefunds = { found: RecordedDiscrepancy[]; externalChanged: boolean }

/** Applies notifications, the refunded delta (with a snapshot) and deadlines to the refunds, in this order. */
async function judgeRefunds(
  ctx: Pick<RefundsContext, 'config' | 'encryption'>,
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
  { snapshot, changed }: Pick<ReconcileInput, 'snapshot' | 'changed'>,
): Promise<JudgedRefunds> {
  const { config } = ctx
  const { drafts } = locked
  const { findings: notified, externalNotified } = await handleEvidence(
    ctx,
    tx,
    key,
    locked,
    snapshot,
  )
  const matched =
    snapshot && (await matchPayments(config, tx, key, locked, { ...snapshot, changed }))
  const timedOut = drafts.flatMap((draft) => {
    const view = snapshot && viewSnapshot(snapshot, draft, locked)
    const mayHaveMoved = explainMayHaveMoved(locked, draft.now)
    const disagreement = applyDeadlines(draft, { mayHaveMoved, snapshot: view }, config)
    const { paymentId, refundId } = draft.now
    return disagreement ? [{ ...disagreement, paymentId, refundId }] : []
  })
  const unmatched = findUnmatchedExternal(locked.payments, config)
  const findings = [...notified, ...(matched?.findings ?? []), ...timedOut, ...unmatched]
  const externalChanged = externalNotified || matched?.externalChanged === true
  const found = await recordFindings(tx, key, locked, findings, { ...matched, externalChanged })
  await recordExternalChanges(tx, key, locked.externalChanges)
  return { found, externalChanged }
}

/** Handles notifications, and judges again what was inferred where they changed external refunds. */
async function handleEvidence(
  ctx: Pick<RefundsContext, 'config' | 'encryption'>,
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
  snapshot: SnapshotRef | undefined,
): Promise<{ findings: Finding[]; externalNotified: boolean }> {
  const findings = await handleNotifications(ctx, tx, key, locked)
  for (const payment of locked.payments) {
    locked.externalChanges.push(...(await releaseOtherReadings(tx, key, payment)))
  }
  if (locked.notifications.length === 0 && locked.externalChanges.length === 0) {
    return { findings, externalNotified: false }
  }
  const externalNotified = await refreshExternalRefunds(tx, key, locked)
  for (const payment of locked.payments) {
    const isChanged = locked.externalChanges.some((one) => one.paymentId === payment.paymentId)
    const isMatchedNext = snapshot !== undefined && payment.listed
    if (isChanged && !isMatchedNext) rejudgeInferred(payment, locked.drafts)
  }
  return { findings, externalNotified }
}

/** What the snapshot shows about the payment of a refund, once its refunded delta is matched. */
function viewSnapshot(
  { callId }: SnapshotRef,
  { now: { paymentId } }: RefundDraft,
  { payments }: LockedRefunds,
) {
  const payment = payments.find((one) => one.paymentId === paymentId)
  if (payment?.unmatchedDelta === undefined) return undefined
  const { unmatchedDelta, refundedNow, refundedAtFirst, returning } = payment
  return { callId, unmatchedDelta, refundedNow, refundedAtFirst, returning }
}

/** Resolves the discrepancies that are over, then records the new ones, so that one found again ends up open. */
async function recordFindings(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  { drafts, payments }: LockedRefunds,
  findings: readonly Finding[],
  { rematched = [], externalChanged }: Partial<MatchedPayments>,
): Promise<RecordedDiscrepancy[]> {
  const key = { merchantCode, transactionId }
  const resolved: ResolvedDiscrepancy[] = [
    // What is still unmatched is among the findings.
    ...(externalChanged ? payments : []).map(
      ({ paymentId }): ResolvedDiscrepancy => ({
        ...key,
        kind: 'external_refund_unmatched',
        paymentId,
      }),
    ),
    ...rematched.flatMap((paymentId): ResolvedDiscrepancy[] => [
      { ...key, kind: 'unexplained_growth', paymentId },
      { ...key, kind: 'refunded_amount_fell', paymentId },
    ]),
    ...drafts
      .filter(({ transitions }) => transitions.some(({ from }) => from === 'accepted'))
      .map(
        ({ now: { refundId } }): ResolvedDiscrepancy => ({
          ...key,
          kind: 'refund_without_end',
          refundId,
        }),
      ),
  ]
  const [, found] = await pipeline(
    resolveDiscrepancies(tx, resolved),
    recordDiscrepancies(
      tx,
      findings.map((one) => ({ ...one, ...key })),
    ),
  )
  return found
}

async function saveRefunds(
  { config, log }: Pick<RefundsContext, 'config' | 'log'>,
  tx: Tx,
  { drafts, payments, externalChanges }: LockedRefunds,
  turn: SendingTurn,
  { found, externalChanged }: JudgedRefunds,
): Promise<ReconciledRefunds> {
  const saved = await saveDrafts(tx, config, drafts, turn)
  const defects = await recordDiscrepancies(tx, drafts.flatMap(describeDefect))
  for (const { refundId, theirs } of defects) {
    log.error({ refundId, move: theirs }, 'no rule for what happened to a refund; a person decides')
  }
  const changed = saved || externalChanged
  return { drafts, payments, changed, found: [...found, ...defects], externalChanges }
}

/** A move that no rule admits is a defect of this service: an operator reports it, and a person decides the refund. */
function describeDefect({ now, missing }: RefundDraft): NewDiscrepancy[] {
  if (missing === undefined) return []
  const { merchantCode, transactionId, paymentId, refundId } = now
  const subject = { merchantCode, transactionId, paymentId, refundId }
  const sides = { ours: `a refund that was ${missing.status}`, theirs: missing.move }
  return [{ ...subject, kind: 'refund_rule_missing', ...sides }]
}
