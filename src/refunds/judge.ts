import { applyDeadlines, type RefundSettings, type SnapshotView } from './deadlines.ts'
import { countExternal, findUnmatchedExternal, releaseOtherReadings } from './external.ts'
import type { RefundDraft } from './lifecycle.ts'
import { type MatchedPayments, matchPayments, rejudgeInferred } from './match.ts'
import { explainMayHaveMoved } from './measure.ts'
import { handleNotifications } from './notifications.ts'
import type { ExternalRefund, Finding, LockedRefunds, Snapshot } from './types.ts'

/**
 * Judges the refunds of a transaction: applies notifications, the refunded delta (with a snapshot) and deadlines, in this
 * order. It changes nothing but `locked`, and needs nothing else: no database, no clock.
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
    const view = snapshot && viewSnapshot(snapshot, draft, locked)
    const mayHaveMoved = explainMayHaveMoved(locked, draft.now)
    const disagreement = applyDeadlines(draft, { mayHaveMoved, snapshot: view }, settings)
    const { paymentId, refundId } = draft.now
    return disagreement ? [{ ...disagreement, paymentId, refundId }] : []
  })
  const unmatched = findUnmatchedExternal(locked.payments, settings.REFUND_RESOLVE_FOR_MS)
  return {
    findings: [...notified, ...matched.findings, ...timedOut, ...unmatched],
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
  const changes = locked.external.flatMap((one) => one.changes)
  for (const payment of locked.payments) {
    const isChanged = changes.some(({ paymentId }) => paymentId === payment.paymentId)
    const isMatchedNext = snapshot !== undefined && payment.listed
    if (isChanged && !isMatchedNext) rejudgeInferred(payment, locked.drafts)
  }
  return { findings, externalNotified: listCounted(locked) !== before }
}

/** Describes the external refunds that count, to notice whether others do. */
function listCounted({ payments }: LockedRefunds): string {
  const describe = ({ id, amount, matched }: ExternalRefund) => `${id} ${amount} ${matched}`
  return payments.flatMap(({ external }) => external.map(describe)).join('\n')
}

/** What the snapshot shows about the payment of a refund, once its refunded delta is matched. */
function viewSnapshot(
  { callId }: Snapshot,
  { now: { paymentId } }: RefundDraft,
  { payments }: LockedRefunds,
): SnapshotView | undefined {
  const payment = payments.find((one) => one.paymentId === paymentId)
  const { unmatchedDelta } = payment ?? {}
  return payment && unmatchedDelta !== undefined
    ? { ...payment, unmatchedDelta, callId }
    : undefined
}
