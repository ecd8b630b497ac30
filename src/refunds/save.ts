import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import { externalRefunds, payments, refunds } from '../db/schema.ts'
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
import { type RefundSettings, type SendingTurn, scheduleDraft } from './deadlines.ts'
import { recordExternalChanges } from './events.ts'
import { isShownByPayment, type RefundDraft, STATES } from './lifecycle.ts'
import type { MatchedPayments } from './match.ts'
import type { ExternalChange, ExternalDraft, LockedRefunds } from './types.ts'

export type SavedRefunds = {
  /** Something visible to readers has changed. */
  changed: boolean
  /** Discrepancies recorded for the first time. */
  found: RecordedDiscrepancy[]
}

/** Saves what the rules have changed, and its history. The caller has locked the rows. */
export async function saveRefunds(
  tx: Tx,
  config: RefundSettings,
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

/** One that was not known has no row, because all rows of a locked payment were read. @throws Error when it has one */
async function saveExternal(
  tx: Tx,
  { merchantCode }: TransactionKey,
  { before, now }: ExternalDraft,
): Promise<void> {
  if (now === before) return
  const returning = { id: externalRefunds.id }
  const isThis = and(eq(externalRefunds.merchantCode, merchantCode), eq(externalRefunds.id, now.id))
  const saved = before
    ? await build(tx).update(externalRefunds).set(now).where(isThis).returning(returning)
    : await build(tx)
        .insert(externalRefunds)
        .values({ ...now, merchantCode, firstSeenAt: sql`now()` })
        .onConflictDoNothing()
        .returning(returning)
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
  const bodies = notifications.map(({ body }) => body)
  await tx`
    update ipn_events as e set handled_at = now(), body = coalesce(n.body, e.body)
    from unnest(${ids}::bigint[], ${bodies}::text[]) as n (id, body)
    where e.merchant_code = ${merchantCode} and e.id = any(${ids}::bigint[]) and e.id = n.id`
}

/** Saves what refunds that came back change: the amount refunded at first, and the history. */
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
  const [, recorded] = await pipeline(
    resolveDiscrepancies(
      tx,
      listOver(locked, judged).map((one) => ({ ...one, ...key })),
    ),
    recordDiscrepancies(tx, [...found, ...locked.drafts.flatMap(describeDraft)]),
  )
  return recorded
}

type Over = Pick<ResolvedDiscrepancy, 'kind' | 'paymentId' | 'refundId'>

/** Lists the discrepancies that are over. Those that are still unmatched are found again. */
function listOver(
  { payments, drafts }: LockedRefunds,
  { rematched, externalChanged }: MatchedPayments,
): Over[] {
  const ended = drafts.filter(({ transitions }) =>
    transitions.some(({ from }) => from === 'accepted'),
  )
  const shown = drafts.filter((one) => !isShownByPayment(one.before) && isShownByPayment(one.now))
  return [
    ...(externalChanged ? payments : []).map(
      ({ paymentId }): Over => ({ kind: 'external_refund_unmatched', paymentId }),
    ),
    ...rematched.flatMap((paymentId): Over[] => [
      { kind: 'unexplained_growth', paymentId },
      { kind: 'refunded_amount_fell', paymentId },
    ]),
    ...ended.map(({ now: { refundId } }): Over => ({ kind: 'refund_without_end', refundId })),
    ...shown.map(({ now: { refundId } }): Over => ({ kind: 'refund_without_growth', refundId })),
  ]
}

/** Tells of a move that no rule admits, which is our defect, and of an answer that contradicts a decision. */
function describeDraft({ now, missing, contradicted }: RefundDraft): NewDiscrepancy[] {
  const { merchantCode, transactionId, paymentId, refundId } = now
  const subject = { merchantCode, transactionId, paymentId, refundId }
  const told: NewDiscrepancy[] = []
  if (missing !== undefined) {
    const sides = { ours: `a refund that was ${missing.status}`, theirs: missing.move }
    told.push({ ...subject, kind: 'refund_rule_missing', ...sides })
  }
  if (contradicted) told.push({ ...subject, kind: 'decided_against_evidence', ...contradicted })
  return told
}

function hasVisibleChange(draft: RefundDraft): boolean {
  return draft.transitions.length > 0 || looksDifferent(draft)
}

/** Whether a reader sees the change, apart from `updatedAt`. `sending` is shown as pending. */
export function looksDifferent({ before, now }: RefundDraft): boolean {
  return (
    SHOWN.some((member) => before[member] !== now[member]) ||
    STATES[before.status].shown !== STATES[now.status].shown
  )
}

const SHOWN = [
  'inferred',
  'gatewayRefundId',
  'fee',
  'notifiedReference',
  'failureSource',
  'failureReason',
  'failureMessage',
] as const

/** Writes the draft of a decision. @throws Error when no rule admits the decision */
export async function saveDraft(tx: Tx, config: EraseSettings, draft: RefundDraft): Promise<void> {
  const { missing, now } = draft
  if (missing) {
    throw new Error(
      `no rule: refund ${now.refundId} is ${missing.status}, not to be ${missing.move}`,
    )
  }
  await writeDraft(tx, config, draft)
}

type EraseSettings = Pick<RefundSettings, 'REFUND_CONFIRM_FAILED_MS'>

/**
 * Writes a draft to its row, which must have the status it was read with, and its history. The receiver of a refund
 * that has ended is kept while its outcome may be revised.
 */
async function writeDraft(tx: Tx, config: EraseSettings, draft: RefundDraft): Promise<void> {
  const { before, now, transitions, notes, dueInMs } = draft
  const hasEnded = transitions.length > 0 && STATES[now.status].ended
  const isDueChanged = dueInMs !== before.dueInMs
  if (now === before && notes.length === 0 && !isDueChanged) return
  const { merchantCode, transactionId, paymentId, refundId } = now
  const key = { merchantCode, transactionId, paymentId, refundId }
  const [saved] = await pipeline(
    build(tx)
      .update(refunds)
      .set({
        status: now.status,
        ...pickChanged(draft),
        ...(hasVisibleChange(draft) ? { updatedAt: sql`now()` } : {}),
        ...(isDueChanged ? { dueAt: afterMs(dueInMs) } : {}),
        ...(hasEnded ? { eraseReceiverAt: afterMs(config.REFUND_CONFIRM_FAILED_MS) } : {}),
      })
      .where(
        and(
          eq(refunds.merchantCode, merchantCode),
          eq(refunds.refundId, refundId),
          eq(refunds.status, before.status),
        ),
      )
      .returning({ refundId: refunds.refundId })
      .execute(),
    recordChanges(tx, [
      ...notes.map(({ code, ...note }) => ({
        ...key,
        ...note,
        field: 'notification',
        after: code,
      })),
      ...transitions.map(({ from, to, cause: { reason, callId, ipnEventId } }) => ({
        ...key,
        field: 'status',
        before: from,
        after: to,
        callId,
        ipnEventId,
        cause: reason,
      })),
    ]),
  )
  if (saved.length !== 1) {
    throw new Error(`refund ${refundId} was changed by another transaction`)
  }
}

const afterMs = (ms: number | null) => sql`now() + ${ms}::float8 * interval '1 millisecond'`

const TABLE = getTableColumns(refunds)
const NAMES = Object.keys(TABLE).filter((name): name is keyof typeof TABLE => name in TABLE)

function pickChanged({ before, now }: RefundDraft): Partial<typeof refunds.$inferInsert> {
  const changed = NAMES.filter((name) => before[name] !== now[name])
  return Object.fromEntries(changed.map((name) => [name, now[name]]))
}

/** @returns whether anything visible to readers has changed */
async function saveDrafts(
  tx: Tx,
  config: RefundSettings,
  drafts: readonly RefundDraft[],
  turn: SendingTurn,
): Promise<boolean> {
  let changed = false
  for (const draft of drafts) {
    scheduleDraft(draft, drafts, turn, config)
    // A matched refund is no longer reserved, so more of the payment may be refundable.
    const { before, now } = draft
    changed ||= hasVisibleChange(draft) || before.matched !== now.matched
    changed ||= before.inFirstSight !== now.inFirstSight
    await writeDraft(tx, config, draft)
  }
  return changed
}
