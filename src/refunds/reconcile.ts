import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { SnapshotRef } from '../payments/odd-readings.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { endAttempt, endInterrupted, saveInterrupted } from './answer.ts'
import {
  type Attempt,
  type AttemptContext,
  prepareAttempt,
  type SendPermit,
  type SentAttempt,
} from './attempt.ts'
import { lockRefunds } from './case.ts'
import type { SendingTurn } from './draft.ts'
import { judge } from './judge.ts'
import type { RefundDraft } from './lifecycle.ts'
import { readDetails } from './notifications.ts'
import { type SavedRefunds, saveRefunds } from './save.ts'
import type { ExternalChange, LockedPayment, LockedRefunds } from './types.ts'

export type RefundsContext = AttemptContext & Pick<Context, 'lifecycle'>

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
export type ReconciledRefunds = SavedRefunds & {
  drafts: readonly RefundDraft[]
  payments: readonly LockedPayment[]
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
  for (const draft of locked.drafts) endInterrupted(draft)
  await saveInterrupted(tx, locked.drafts)
  readDetails(ctx, locked)
  const judged = judge(locked, snapshot && { ...snapshot, changed }, ctx.config)
  const maySend = snapshot && 'breaker' in sending && !ctx.lifecycle.stopping.aborted
  const attempt = maySend ? await prepareAttempt(ctx, tx, locked, snapshot, sending) : undefined
  const turn: SendingTurn =
    snapshot && 'pausedMs' in sending
      ? { answered, had: false, pausedMs: sending.pausedMs }
      : { answered, had: attempt === undefined }
  return { ...(await save(ctx, tx, key, locked, { turn, judged })), attempt }
}

/**
 * Records the result of an attempt and applies it to its refund, together with the notifications received in
 * the meantime. The caller holds the transaction's row.
 * @param isLeased the caller holds the lease under which the attempt was made: other attempts were interrupted
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
  return await finish(ctx, tx, key, locked)
}

/** Judges the refunds of a transaction after the answer to an attempt, which gives no waiting refund its turn. */
async function finish(
  ctx: RefundsContext,
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
): Promise<ReconciledRefunds> {
  readDetails(ctx, locked)
  const judged = judge(locked, undefined, ctx.config)
  return await save(ctx, tx, key, locked, { judged, turn: { had: false, answered: true } })
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
  return { ...saved, drafts, payments, externalChanges: external.flatMap((one) => one.changes) }
}
