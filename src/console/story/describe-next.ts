import type { Config } from '../../config/config.ts'
import { toIso } from '../../platform/postgres/row-set.ts'
import type { FoundRefund } from '../../refunds/find.ts'
import { t } from '../view.ts'

type Deadlines = Pick<
  Config,
  'REFUND_APPROVAL_WITHIN_MS' | 'REFUND_SEND_WITHIN_MS' | 'REFUND_RESOLVE_FOR_MS'
>

type RefundFacts = Pick<
  FoundRefund['refund'],
  'status' | 'inferred' | 'requestedAt' | 'approvedAt' | 'lastSentAt' | 'dueAt'
>

/** What happens to a refund next, and when (ISO 8601) where a time follows the text. */
export type NextStep = { text: string; at?: string }

/**
 * Describes what happens to a refund next.
 * @param isHeld whether the refund, its payment or its account is held
 */
export function describeNext(refund: RefundFacts, isHeld: boolean, settings: Deadlines): NextStep {
  const { status, requestedAt, approvedAt, lastSentAt, dueAt } = refund
  switch (status) {
    case 'awaiting_approval': {
      const at = addMs(requestedAt, settings.REFUND_APPROVAL_WITHIN_MS)
      return { text: t('refunds.next.awaitingApproval'), at }
    }
    case 'pending': {
      const failsAt = addMs(approvedAt ?? requestedAt, settings.REFUND_SEND_WITHIN_MS)
      if (isHeld) return { text: t('refunds.next.held'), at: failsAt }
      return withTime(t('refunds.next.pending'), t('refunds.next.pendingNow'), dueAt)
    }
    case 'sending':
      return { text: t('refunds.next.sending') }
    case 'accepted':
      return withTime(t('refunds.next.accepted'), t('refunds.next.acceptedNow'), dueAt)
    case 'unknown': {
      const at = addMs(lastSentAt ?? requestedAt, settings.REFUND_RESOLVE_FOR_MS)
      return { text: t('refunds.next.unknown'), at }
    }
    case 'succeeded':
      return { text: refund.inferred ? t('refunds.next.inferred') : t('refunds.next.succeeded') }
    case 'failed':
      return { text: t('refunds.next.failed') }
    case 'needs_review':
      return { text: t('refunds.next.review') }
    case 'returned':
      return { text: t('refunds.next.returned') }
  }
}

/** Leaves out a time that has passed. */
function withTime(text: string, now: string, at: string | null): NextStep {
  if (at === null || Date.parse(toIso(at)) <= Date.now()) return { text: now }
  return { text, at: toIso(at) }
}

function addMs(time: string, ms: number): string {
  return new Date(Date.parse(toIso(time)) + ms).toISOString()
}
