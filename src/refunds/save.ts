import { and, eq, sql } from 'drizzle-orm'
import type { Config } from '../config/config.ts'
import { externalRefunds, ipnEvents, payments } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type {
  NewDiscrepancy,
  RecordedDiscrepancy,
  ResolvedDiscrepancy,
} from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import { recordChanges } from '../events/record-events.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type SendingTurn, saveDrafts } from './draft.ts'
import { recordExternalChanges } from './events.ts'
import type { RefundDraft } from './lifecycle.ts'
import type { MatchedPayments } from './match.ts'
import type { ExternalChange, ExternalDraft, LockedRefunds } from './types.ts'

export type SavedRefunds = {
  /** Something visible to readers has changed. */
  changed: boolean
  /** Discrepancies recorded for the first time. */
  found: RecordedDiscrepancy[]
}

/**
 * Saves what the rules have made of the refunds of a transaction: external refunds, handled notifications, discrepancies,
 * refunds, and the history of it all. The caller has locked the rows.
 */
export async function saveRefunds(
  tx: Tx,
  config: Config,
  key: TransactionKey,
  locked: LockedRefunds,
  { judged, turn }: { judged: MatchedPayments; turn: SendingTurn },
): Promise<SavedRefunds> {
  await saveExternalRefunds(tx, key, locked)
  await saveHandled(tx, key, locked)
  await saveFreed(tx, key, locked)
  const found = await saveFindings(tx, key, locked, judged)
  const changed = await saveDrafts(tx, config, locked.drafts, turn)
  return { changed: changed || judged.externalChanged, found }
}

/** Writes the external refunds, with their history. @returns what was recorded of them */
export async function saveExternalRefunds(
  tx: Tx,
  key: TransactionKey,
  { external }: Pick<LockedRefunds, 'external'>,
): Promise<ExternalChange[]> {
  for (const one of external) await saveExternal(tx, key, one)
  const changes = external.flatMap((one) => one.changes)
  await recordExternalChanges(tx, key, changes)
  return changes
}

/**
 * Writes an external refund. One that was not known has no row: all of a locked payment were read.
 * @throws Error when it has one, which the locks exclude
 */
async function saveExternal(
  tx: Tx,
  { merchantCode }: TransactionKey,
  { before, now }: ExternalDraft,
): Promise<void> {
  if (now === before) return
  const e = externalRefunds
  const saved = before
    ? await build(tx)
        .update(e)
        .set(now)
        .where(and(eq(e.merchantCode, merchantCode), eq(e.id, now.id)))
        .returning({ id: e.id })
    : await build(tx)
        .insert(e)
        .values({ ...now, merchantCode, firstSeenAt: sql`now()` })
        .onConflictDoNothing()
        .returning({ id: e.id })
  if (saved.length !== 1) {
    throw new Error(`external refund ${now.requestId} was changed by another transaction`)
  }
}

async function saveHandled(
  tx: Tx,
  { merchantCode }: TransactionKey,
  { notifications }: LockedRefunds,
): Promise<void> {
  if (notifications.length === 0) return
  const ids = notifications.map(({ id }) => id)
  const isOne = sql`${ipnEvents.id} = any(${sql.param(ids)}::bigint[])`
  await build(tx)
    .update(ipnEvents)
    .set({ handledAt: sql`now()` })
    .where(and(eq(ipnEvents.merchantCode, merchantCode), isOne))
}

/** Saves what refunds that came back leave of their payments, also of what was refunded at first. */
export async function saveFreed(
  tx: Tx,
  key: TransactionKey,
  locked: Pick<LockedRefunds, 'payments' | 'freed'>,
): Promise<void> {
  const { merchantCode, transactionId } = key
  for (const { paymentId, refundedAtFirst } of locked.payments) {
    const freed = locked.freed.filter((one) => one.paymentId === paymentId)
    if (freed.length === 0) continue
    await build(tx)
      .update(payments)
      .set({ refundedAtFirst })
      .where(and(eq(payments.merchantCode, merchantCode), eq(payments.paymentId, paymentId)))
  }
  await recordChanges(
    tx,
    locked.freed.map(({ paymentId, refundId, amount, cause: { reason: cause, callId } }) => {
      const of = { merchantCode, transactionId, paymentId, refundId, callId }
      return { ...of, field: 'freed', after: amount, cause }
    }),
  )
}

/** Resolves the discrepancies that are over, then records the new ones, so that one found again ends up open. */
async function saveFindings(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  locked: LockedRefunds,
  judged: MatchedPayments,
): Promise<RecordedDiscrepancy[]> {
  const key = { merchantCode, transactionId }
  const found = judged.findings.map((one): NewDiscrepancy => ({ ...one, ...key }))
  const defects = locked.drafts.flatMap(describeDefect)
  const [, recorded] = await pipeline(
    resolveDiscrepancies(
      tx,
      listOver(locked, judged).map((one) => ({ ...one, ...key })),
    ),
    recordDiscrepancies(tx, [...found, ...defects]),
  )
  return recorded
}

type Over = Pick<ResolvedDiscrepancy, 'kind' | 'paymentId' | 'refundId'>

/** Lists the discrepancies that are over. What is still unmatched is among the findings. */
function listOver(
  { payments, drafts }: LockedRefunds,
  { rematched, externalChanged }: MatchedPayments,
): Over[] {
  const ended = drafts.filter(({ transitions }) =>
    transitions.some(({ from }) => from === 'accepted'),
  )
  return [
    ...(externalChanged ? payments : []).map(
      ({ paymentId }): Over => ({ kind: 'external_refund_unmatched', paymentId }),
    ),
    ...rematched.flatMap((paymentId): Over[] => [
      { kind: 'unexplained_growth', paymentId },
      { kind: 'refunded_amount_fell', paymentId },
    ]),
    ...ended.map(({ now: { refundId } }): Over => ({ kind: 'refund_without_end', refundId })),
  ]
}

/** A move that no rule admits is a defect of this service: an operator reports it, and a person decides the refund. */
function describeDefect({ now, missing }: RefundDraft): NewDiscrepancy[] {
  if (missing === undefined) return []
  const { merchantCode, transactionId, paymentId, refundId } = now
  const subject = { merchantCode, transactionId, paymentId, refundId }
  const sides = { ours: `a refund that was ${missing.status}`, theirs: missing.move }
  return [{ ...subject, kind: 'refund_rule_missing', ...sides }]
}
