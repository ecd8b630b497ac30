import type { Context } from '../context.ts'
import { maskStored, type RefundDetails, readRefundDetails } from '../gateway/stored-body.ts'
import { readResult, weigh } from './evidence.ts'
import { recordExternal } from './external.ts'
import { isUnsent, move, type RefundDraft, type RefundRow, sendToReview } from './lifecycle.ts'
import { decryptReceiver, maskIn } from './receiver.ts'
import type { Disagreement, Finding, LockedRefunds, RefundNotification } from './types.ts'

/**
 * Reads the fee, the gateway's message and its reference from the notifications of our refunds. Of an undocumented
 * reading only the message is believed. The receiver's account number is masked in them, and in what stays stored.
 */
export function readDetails(
  { config, encryption }: Pick<Context, 'config' | 'encryption'>,
  { drafts, notifications }: LockedRefunds,
): void {
  for (const one of notifications) {
    const own = findOwn(drafts, one)
    if (!own || one.body === null) continue
    const { receiver, refundId } = own.now
    const known = receiver && decryptReceiver(encryption, receiver, 'receiver', refundId)
    const mask = (text: string) => (known ? maskIn(text, known.accountNumber) : text)
    const details = readRefundDetails(one.body, config.GATEWAY_FIELD_PREFIX)
    const message = details.message && mask(details.message)
    one.details = one.documented ? { ...details, message } : { message }
    one.body = maskStored(one.body, mask)
  }
}

function findOwn(drafts: readonly RefundDraft[], { requestId }: RefundNotification) {
  return drafts.find(({ now }) => now.refundId === requestId.toLowerCase())
}

/**
 * Handles the refund notifications of a transaction, once each. A notification changes a refund of ours only if
 * its hash verified and merchant, payment, request id and amount are all ours: the hash joins values without
 * their names, so it does not prove which field a value belongs to. A verified success with another request id
 * is recorded as an external refund, for matching. Any other notification is only a hint to query.
 */
export function handleNotifications(locked: LockedRefunds): Finding[] {
  return locked.notifications.flatMap((one) => {
    const own = findOwn(locked.drafts, one)
    if (own) return applyToOwn(own, one) ?? []
    return recordExternal(locked, one, readResult(one.code))
  })
}

function applyToOwn(draft: RefundDraft, one: RefundNotification): Finding | undefined {
  const { refundId, paymentId, amount } = draft.now
  const { same, settles, stops } = weigh(one, draft.now)
  if (!stops || (same && one.handledBefore)) return undefined
  if (!same) {
    const reason = 'the gateway notified its request id with another payment or amount'
    // A lost row of it was sent. If it were sent again, the money would move twice.
    if (isUnsent(draft.now))
      sendToReview(draft, 'notified_unsent', 'contradicted', { reason, ipnEventId: one.id })
    else if (draft.now.status === 'failed' && readResult(one.code) === 'success')
      sendToReview(draft, 'notified_contradiction', 'contradicted', { reason, ipnEventId: one.id })
    return {
      kind: 'notification_mismatch',
      ours: `request ${refundId}, payment ${paymentId}, amount ${amount}`,
      theirs: `request ${one.requestId}, payment ${one.paymentId}, amount ${one.amount}`,
      paymentId,
      refundId,
    }
  }
  if (settles === undefined) {
    const reason = `the gateway notified its request id (code ${one.code}), but it was not sent from here`
    if (isUnsent(draft.now))
      sendToReview(draft, 'notified_unsent', 'no_evidence', { reason, ipnEventId: one.id })
    return undefined
  }
  const apply = settles === 'success' ? applySuccessNotification : applyFailureNotification
  const disagreement = apply(draft, { ...one, ...one.details, code: one.code ?? '' })
  return disagreement && { ...disagreement, paymentId, refundId }
}

/** A verified notification of a refund of ours, whose members all match. */
export type OwnNotification = {
  id: number
  code: string
  receivedAt: string
  /** It was received before the current snapshot was asked for. */
  beforeSnapshot: boolean
} & Partial<RefundDetails>

/**
 * Applies a success notification to its refund. One that follows a failure notification contradicts it: a person
 * decides.
 * @returns the disagreement when the refund was shown as failed
 */
export function applySuccessNotification(
  draft: RefundDraft,
  { id, code, receivedAt, ...details }: OwnNotification,
): Disagreement | undefined {
  const { status, failureCode, successNotifiedAt } = draft.now
  learnDetails(draft, details)
  // A person may have decided against an earlier notification, so the same one again changes nothing.
  if (successNotifiedAt !== null && status !== 'returned') return undefined
  draft.now = { ...draft.now, successNotifiedAt: successNotifiedAt ?? receivedAt }
  const cause = { reason: 'the gateway notified that the refund succeeded', ipnEventId: id }
  const theirs = 'success notification'
  if (status === 'returned') return keepForReturned(draft, { ...cause, code }, theirs)
  const disagreement =
    status === 'failed'
      ? { kind: 'success_after_failure' as const, ours: 'failed', theirs }
      : undefined
  if (failureCode !== null || status === 'succeeded') {
    draft.notes.push({ code, cause: cause.reason, ipnEventId: id })
  }
  if (failureCode !== null) {
    const reason = `the gateway notified both a failure (code ${failureCode}) and a success`
    sendToReview(draft, 'notified_contradiction', 'contradicted', { reason, ipnEventId: id })
    return disagreement
  }
  const proven = { inferred: false }
  if (status === 'succeeded') draft.now = { ...draft.now, ...proven }
  else move(draft, 'notified_success', cause, proven)
  return disagreement
}

/**
 * Applies a failure notification to its refund. An accepted or unknown refund that was sent once keeps its status
 * until later answers confirm the failure, or a person decides. After several attempts, nobody can say which one
 * failed.
 * @returns the disagreement when the refund was shown as succeeded
 */
export function applyFailureNotification(
  draft: RefundDraft,
  { id, code, receivedAt, beforeSnapshot, ...details }: OwnNotification,
): Disagreement | undefined {
  const { status, failureCode } = draft.now
  learnDetails(draft, details)
  const reason = `the gateway notified a failure (code ${code})`
  if (failureCode === code && status !== 'returned') return undefined
  // The first failure is the one a later query has to confirm.
  if (failureCode === null) {
    const order = { failureNotifiedNumber: draft.now.want, failureBeforeSnapshot: beforeSnapshot }
    const failure = { failureNotifiedAt: receivedAt, ...order }
    const words = { failureCode: code, failureWords: details.message ?? null }
    // Answers from before it confirm nothing.
    draft.now = { ...draft.now, ...failure, ...words, noGrowthSince: null }
  }
  const theirs = `failure notification, code ${code}`
  if (status === 'returned') return keepForReturned(draft, { reason, ipnEventId: id, code }, theirs)
  draft.notes.push({ code, cause: reason, ipnEventId: id })
  const why = findContradiction(draft.now, failureCode)
  if (why === undefined) return undefined
  const cause = { reason: `${reason} ${why}`, ipnEventId: id }
  sendToReview(draft, 'notified_contradiction', 'contradicted', cause)
  if (status !== 'succeeded') return undefined
  return { kind: 'failure_after_success', ours: 'succeeded', theirs }
}

/** The details of the newest notification are shown, whatever its outcome. */
function learnDetails(draft: RefundDraft, { fee, reference }: Partial<RefundDetails>): void {
  const { now } = draft
  const learnt = { fee: fee ?? now.fee, notifiedReference: reference ?? now.notifiedReference }
  if (learnt.fee !== now.fee || learnt.notifiedReference !== now.notifiedReference) {
    draft.now = { ...now, ...learnt }
  }
}

/**
 * A person decided that the refund came back, so later notifications are kept for whoever decides again. Each is a
 * discrepancy of its own, because the refund may have been paid out once more.
 */
function keepForReturned(
  draft: RefundDraft,
  { code, reason, ipnEventId }: { code: string; reason: string; ipnEventId: number },
  notified: string,
): Disagreement {
  draft.notes.push({ code, cause: reason, ipnEventId })
  const theirs = `${notified}, id ${ipnEventId}`
  return { kind: 'decided_against_evidence', ours: 'decided as returned', theirs }
}

/** Why a query cannot simply confirm a failure notification. */
function findContradiction(now: RefundRow, otherCode: string | null): string | undefined {
  if (now.status === 'succeeded') return 'after the refund had succeeded'
  if (otherCode !== null) return `and another one (code ${otherCode})`
  if (now.successNotifiedAt !== null) return 'and a success'
  if (isUnsent(now)) return 'of a refund that was not sent from here'
  if (now.status === 'needs_review') return 'while the refund was in review'
  if (now.status === 'failed') return undefined
  if (now.requestedBeforeRestore) return 'although a restore may have forgotten an attempt'
  return now.attempts > 1 ? `after ${now.attempts} attempts` : undefined
}
