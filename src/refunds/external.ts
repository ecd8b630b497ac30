import type { DiscrepancyRow } from '../discrepancies/kinds.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import { deriveExternalState, type ExternalState } from './external-view.ts'
import type { Cause } from './lifecycle.ts'
import type {
  ExternalDraft,
  ExternalRefund,
  ExternalRow,
  Finding,
  LockedRefunds,
  RefundNotification,
} from './types.ts'

export function changeExternal(
  draft: ExternalDraft,
  patch: Partial<ExternalRow>,
  cause: Cause,
): void {
  const before = deriveExternalState(draft.now)
  draft.now = { ...draft.now, ...patch }
  recordState(draft, before, cause)
}

function recordState(draft: ExternalDraft, before: ExternalState | null, cause: Cause): void {
  const { id: externalId, paymentId } = draft.now
  const after = deriveExternalState(draft.now)
  draft.changes.push({ externalId, paymentId, before, after, cause })
}

/** Whether it was released or never happened, so that nothing is deducted for it. */
function isDropped({ outcome }: ExternalRow): boolean {
  return outcome === 'released' || outcome === 'never_happened'
}

/** Sets which external refunds count for each payment, after they were read or have changed. */
export function countExternal({
  payments,
  external,
}: Pick<LockedRefunds, 'payments' | 'external'>): void {
  const rows = external.map(({ now }) => now).sort(byAge)
  for (const payment of payments) {
    const own = rows.filter(({ paymentId }) => paymentId === payment.paymentId)
    payment.external = own
      .filter(({ outcome }) => outcome === null)
      .map((one) => ({ ...one, contradicted: one.failureNotifiedAt !== null }))
    // These amounts may show all the same, except what a person entered and took back.
    const dropped = own.filter((one) => isDropped(one) && one.source !== 'person')
    payment.released = [...payment.unreserved, ...dropped.map(({ amount }) => amount)]
    payment.explainedAtFirst = addAmounts(
      own.filter(({ outcome }) => outcome === 'part_of_first_sight').map(({ amount }) => amount),
    )
  }
}

/** Whether something became known about a payment that may explain what was inferred on it. */
export function hasNewsOf({ external, notifications }: LockedRefunds, paymentId: string): boolean {
  const changes = external.flatMap((one) => one.changes)
  const unread = notifications.filter(
    ({ verified, documented, amount }) => verified && (!documented || amount === null),
  )
  return [...changes, ...unread].some((one) => one.paymentId === paymentId)
}

const byAge = (a: ExternalRow, b: ExternalRow) => {
  const [first, second] = [a.notifiedAt ?? a.firstSeenAt, b.notifiedAt ?? b.firstSeenAt]
  return first < second ? -1 : Number(first > second)
}

/** Marks external refunds as matched to growth, or as part of what was refunded at first. */
export function markExternal(
  locked: LockedRefunds,
  marked: readonly ExternalRefund[],
  end: { matched: true } | { outcome: 'part_of_first_sight' },
  callId: number,
): void {
  const shown = 'outcome' in end ? 'when the payment was first seen' : 'now'
  for (const draft of locked.external) {
    const { id, requestId, amount } = draft.now
    if (!marked.some((one) => one.id === id)) continue
    const reason = `the refunded amount shows ${shown} the refund of ${amount} made elsewhere (request ${requestId})`
    changeExternal(draft, end, { reason, callId })
  }
}

/**
 * Releases refunds if growth has shown another reading of their text. Each transaction does so for its own history.
 */
export function releaseOtherReadings({ external }: LockedRefunds): void {
  for (const draft of external) {
    const { before, now } = draft
    if (before?.outcome !== null || !before.isOtherReading) continue
    const reason = `another reading of its notification was matched (request ${now.requestId})`
    changeExternal(draft, { outcome: 'released' }, { reason })
  }
}

/**
 * Records a verified success as an external refund, reserved until growth shows it or a person decides. A failure of
 * it, before or after, contradicts it, and a person decides. What a person decided never to have happened stays so.
 */
export function recordExternal(
  locked: LockedRefunds,
  notification: RefundNotification,
  result: 'success' | 'failure' | undefined,
): Finding[] {
  const { verified, documented, reading, paymentId, amount } = notification
  // Nobody can say which of two readings is right, so both are reserved until growth shows one.
  if (!documented || !verified || result === undefined) return []
  if (paymentId === null) return []
  if (amount === null) return result === 'success' ? tellUnreadable(locked, notification) : []
  if (compareAmounts(amount, '0') === 0) return []
  const one = { ...notification, requestId: foldUuid(notification.requestId), paymentId, amount }
  const known = locked.external.find(
    ({ now }) =>
      now.requestId === one.requestId &&
      now.paymentId === paymentId &&
      compareAmounts(now.amount, amount) === 0,
  )
  if (result === 'failure') return reading > 1 || !known ? [] : contradict(known, one)
  return known ? reserveAgain(known, one) : reserve(locked, one)
}

/** Nothing can be reserved for an amount that cannot be read. A person has to ask how much it was. */
function tellUnreadable(
  { payments }: LockedRefunds,
  { requestId, paymentId }: RefundNotification,
): Finding[] {
  const ours = 'nothing is reserved for it'
  const theirs = `success notification, request ${requestId}`
  const kind = 'external_refund_unreadable'
  return payments.flatMap((payment) =>
    payment.paymentId === paymentId ? [{ kind, ours, theirs, paymentId }] : [],
  )
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** UUIDs are the same in any case. Of other request ids that is not known. */
function foldUuid(requestId: string): string {
  return UUID.test(requestId) ? requestId.toLowerCase() : requestId
}

type ExternalNotification = RefundNotification & { paymentId: string; amount: string }

function contradict(draft: ExternalDraft, one: ExternalNotification): Finding[] {
  const { failureNotifiedAt } = draft.now
  if (failureNotifiedAt !== null || isDropped(draft.now) || draft.now.outcome === 'own') return []
  draft.now = { ...draft.now, failureNotifiedAt: one.receivedAt }
  return describeContradiction(draft)
}

function reserve(locked: LockedRefunds, one: ExternalNotification): Finding[] {
  const { paymentId, amount } = one
  if (!locked.payments.some((payment) => payment.paymentId === paymentId)) return []
  const draft = addExternal(locked, {
    ...{ id: one.externalId, requestId: one.requestId, paymentId, amount, ipnEventId: one.id },
    ...{ notifiedAt: one.receivedAt, notifiedBeforeFirst: one.beforeFirst },
    ...{ isOtherReading: one.isOtherShown, failureNotifiedAt: one.failedAt },
  })
  recordState(draft, null, describeReserved(one))
  return describeContradiction(draft)
}

/** Enters unexplained growth as an external refund, on a person's word. It is matched at once. */
export function enterExternal(
  locked: LockedRefunds,
  row: NewExternal & Pick<ExternalRow, 'resolution'>,
  cause: Cause,
): void {
  recordState(addExternal(locked, { ...row, source: 'person', matched: true }), null, cause)
}

type NewExternal = Pick<ExternalRow, 'id' | 'requestId' | 'paymentId' | 'amount'> &
  Partial<ExternalRow>

/** Adds a refund that has no row yet, by default one that is notified and reserved. */
function addExternal({ external }: LockedRefunds, row: NewExternal): ExternalDraft {
  const now: ExternalRow = {
    ...{ source: 'notification', matched: false, outcome: null, resolution: null },
    ...{ ipnEventId: null, notifiedAt: null, failureNotifiedAt: null },
    ...{ firstSeenAt: '', sinceSeenMs: 0 },
    ...{ isOtherReading: false, notifiedBeforeFirst: false, ...row },
  }
  const draft: ExternalDraft = { before: undefined, now, changes: [] }
  external.push(draft)
  return draft
}

/** A released refund is reserved again. Success of what a person decided as never happened is a discrepancy. */
function reserveAgain(draft: ExternalDraft, one: ExternalNotification): Finding[] {
  const { requestId, paymentId, amount, outcome, resolution } = draft.now
  if (outcome === 'never_happened') {
    const ours = `${nameExternal(requestId, amount)} decided as never_happened by ${resolution?.by}`
    const kind = 'decided_against_evidence'
    return [{ kind, ours, theirs: 'another notification of its success', paymentId }]
  }
  if (outcome !== 'released') return []
  const counted = { outcome: null, matched: false }
  const notified = { ipnEventId: one.id, isOtherReading: one.isOtherShown }
  changeExternal(draft, { ...counted, ...notified }, describeReserved(one))
  return describeContradiction(draft)
}

function describeReserved({ id, requestId, amount }: ExternalNotification): Cause {
  const reason = `the gateway notified a refund of ${amount} made elsewhere (request ${requestId})`
  return { reason, ipnEventId: id }
}

function describeContradiction({ now }: ExternalDraft): Finding[] {
  if (now.failureNotifiedAt === null) return []
  const ours = nameExternal(now.requestId, now.amount)
  const theirs = 'its success and its failure were both notified'
  return [{ kind: 'external_refund_contradicted', ours, theirs, paymentId: now.paymentId }]
}

export function nameExternal(requestId: string, amount: string): string {
  return `external refund ${requestId} of ${amount}`
}

/** Names a refund that no growth shows, as the other side of a discrepancy. */
export function nameNotified(requestId: string, amount: string): string {
  return `success notification, request ${requestId}, amount ${amount}`
}

/** Whether one side of a discrepancy names this external refund. */
export function isAboutExternal(
  { ours, theirs }: Pick<DiscrepancyRow, 'ours' | 'theirs'>,
  { requestId, amount }: Pick<ExternalRow, 'requestId' | 'amount'>,
): boolean {
  const name = nameExternal(requestId, amount)
  const isOurs = ours === name || ours.startsWith(`${name} decided as `)
  return isOurs || theirs === nameNotified(requestId, amount)
}
