import type { Config } from '../config/config.ts'
import { compareAmounts } from '../money.ts'
import type { Tone } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { ExternalState } from '../refunds/external-view.ts'
import type { FoundRefund } from '../refunds/find.ts'
import type { RefundView } from '../refunds/view.ts'
import type { TransactionView } from '../transactions/view.ts'
import type { NameIn } from './texts/text.ts'
import { count, formatMoney, listTexts, nameIn, t } from './view.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Formats a length of time in its largest unit, rounded down: `3 days`. Up to two days it is in hours. */
export function formatDuration(ms: number): string {
  if (ms >= 2 * DAY_MS) return count('durations.days', Math.floor(ms / DAY_MS))
  if (ms >= HOUR_MS) return count('durations.hours', Math.floor(ms / HOUR_MS))
  return ms >= MINUTE_MS
    ? count('durations.minutes', Math.floor(ms / MINUTE_MS))
    : t('durations.moment')
}

/** Formats the time left until something, rounded up, so that it is over when the words promise it. */
export function formatTimeLeft(ms: number): string {
  const unit = ms > DAY_MS ? DAY_MS : ms > HOUR_MS ? HOUR_MS : MINUTE_MS
  return formatDuration(Math.ceil(ms / unit) * unit)
}

export function nameKind(kind: string): string {
  return nameIn('discrepancies.kinds', kind)
}

/** One side of a discrepancy: who or what it comes from, in words, and what that is. */
export function describeSide({ source, says: words }: { source: string; says: string }): string {
  return withMore(nameSource(source), words)
}

export function nameSource(source: string): string {
  return nameIn('discrepancies.sources', source)
}

/** A value in words; one that is not documented is shown as it came, and said to be. */
export function nameKnown(group: string, value: string): string {
  const [, known] = listTexts(group).find(([name]) => name === value) ?? []
  return known ?? (value === '' ? t('states.notStated') : t('states.unknown', { value }))
}

/**
 * What a person or an order system did, in words: the audit log names a route of the API or of the console, or a command.
 * What has no words is shown as it is recorded.
 */
export function nameOperation(operation: string): string {
  const bare = operation.replace(/ \/(?:v1|console)\//, ' ').replaceAll(/\/\{\w+\}/g, '')
  const known = nameIn('audit.operations', bare)
  return known === bare ? operation : known
}

export function withMore(text: string, more: string | null): string {
  return more ? `${text}: ${more}` : text
}

/** Returns the state of a transaction and its amounts in words, e.g. "Paid in full, 250,000 VND". */
export function describeState(shown: TransactionView): string {
  const amounts = {
    paid: formatMoney(shown.paidAmount, shown.currency),
    refunded: formatMoney(shown.refundedAmount, shown.currency),
    expected: formatMoney(shown.expectedAmount ?? '0', null),
  }
  switch (shown.state) {
    case 'pending':
      return describePending(shown)
    case 'failed':
      return describeFailed(shown)
    case 'paid':
      if (shown.duplicatePayment) return describeTwice(shown, amounts)
      return t(`story.headline.${comparePaid(shown)}`, amounts)
    case 'partially_refunded':
      return t('story.headline.partlyRefunded', {
        ...amounts,
        before: t(`story.payment.${comparePaid(shown)}`),
        paid: formatMoney(shown.paidAmount, null),
      })
    case 'refunded':
      return t('story.headline.refunded', amounts)
  }
}

function describeTwice(
  { expectedAmount, currency }: TransactionView,
  { paid }: { paid: string },
): string {
  if (expectedAmount === null) return t('story.headline.paidTwice', { paid })
  return t('story.headline.paidTwiceOf', { paid, expected: formatMoney(expectedAmount, currency) })
}

/** A failed one names the amount that was tried. */
function describeFailed({ payments, currency }: TransactionView): string {
  const tried = payments.at(-1)
  return tried === undefined
    ? t('story.headline.failed')
    : t('story.headline.failedOf', { amount: formatMoney(tried.amount, currency) })
}

function describePending({ sync, payments }: TransactionView): string {
  if (sync.status === 'unconfirmed') return t('story.headline.unconfirmed')
  return payments.length === 0 ? t('story.headline.none') : t('story.headline.inProgress')
}

/** Compares what was paid with the amount of the order, where a verified notification states that. */
function comparePaid({ paidAmount, expectedAmount }: TransactionView): NameIn<'story.payment'> {
  if (expectedAmount === null) return 'paid'
  const compared = compareAmounts(paidAmount, expectedAmount)
  if (compared === 0) return 'paidInFull'
  return compared < 0 ? 'paidInPart' : 'overpaid'
}

export function nameRequester(refund: { requestedBy: string; onBehalfOf: string | null }): string {
  const { requestedBy: name, onBehalfOf } = refund
  return onBehalfOf === null ? name : t('refunds.requester', { name, onBehalfOf })
}

export function describeApproval(of: NonNullable<RefundView['approval']>): string {
  const { decision: decided, by, reason } = of
  return decided === null || by === null
    ? t('refunds.approval.open')
    : withMore(t(`refunds.approval.${decided}`, { by }), reason)
}

export function describeResolution(of: NonNullable<RefundView['resolution']>): string {
  const { outcome, by, reason } = of
  const known = ['succeeded', 'failed', 'returned'] as const
  return t(`refunds.decision.${known.find((one) => one === outcome) ?? 'other'}`, { by, reason })
}

export function describeFailure({ source, code, message }: NonNullable<RefundView['failure']>) {
  return source === 'gateway'
    ? withMore(t('refunds.failure.gateway', { code }), message)
    : t(`refunds.failure.${source}`, { message })
}

export function describeReceiver(to: NonNullable<RefundView['receiver']>): string {
  const { accountName: name, accountNumber: number, swiftCode: code } = to
  return t('refunds.receiver', { name, number, code })
}

type Deadlines = Pick<
  Config,
  'REFUND_APPROVAL_WITHIN_MS' | 'REFUND_SEND_WITHIN_MS' | 'REFUND_RESOLVE_FOR_MS'
>

type RefundFacts = Pick<
  FoundRefund['refund'],
  'status' | 'inferred' | 'requestedAt' | 'approvedAt' | 'lastSentAt' | 'dueAt'
>

/** What happens next, and when (ISO 8601) where a time follows the text. */
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
    case 'accepted':
      return withTime(t('refunds.next.accepted'), t('refunds.next.acceptedNow'), dueAt)
    case 'unknown': {
      const at = addMs(lastSentAt ?? requestedAt, settings.REFUND_RESOLVE_FOR_MS)
      return { text: t('refunds.next.unknown'), at }
    }
    case 'succeeded':
      return { text: t(refund.inferred ? 'refunds.next.inferred' : 'refunds.next.succeeded') }
    case 'sending':
    case 'failed':
    case 'needs_review':
    case 'returned':
      return { text: t(`refunds.next.${status}`) }
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

const TRANSACTION_TONES: Record<TransactionView['state'], Tone> = {
  pending: 'soft',
  paid: 'good',
  partially_refunded: 'warn',
  refunded: 'warn',
  failed: 'bad',
}

const REFUND_TONES: Record<RefundView['status'], Tone> = {
  awaiting_approval: 'warn',
  pending: 'soft',
  accepted: 'soft',
  unknown: 'warn',
  succeeded: 'good',
  failed: 'bad',
  needs_review: 'bad',
  returned: 'warn',
}

const PAYMENT_TONES: Record<string, Tone> = { SUCCESS: 'good', FAILED: 'bad', PROCESSING: 'soft' }

/** A state in words, and how it is meant. */
export type Sign = [words: string, tone: Tone]

/** The state of a transaction; that it was paid more than once goes before it. */
export function signTransaction(
  transaction: Pick<TransactionView, 'state'> & { duplicatePayment?: boolean },
): Sign {
  const { state, duplicatePayment } = transaction
  const isTwice = duplicatePayment === true && state === 'paid'
  return isTwice
    ? [t('states.paidTwice'), 'warn']
    : [t(`states.transaction.${state}`), TRANSACTION_TONES[state]]
}

export function signRefund(status: RefundView['status']): Sign {
  return [t(`states.refund.${status}`), REFUND_TONES[status]]
}

/** The status of a payment; one that is not documented is shown as it came. */
export function signPayment(status: string): Sign {
  return [describeStatus(status), PAYMENT_TONES[status] ?? 'warn']
}

export function signExternal(state: ExternalState): Sign {
  return [t(`states.externalRefund.${state}`), state === 'matched' ? 'good' : 'soft']
}

/** The status of a payment in words; one that is not documented is shown as it came. */
export function describeStatus(status: string): string {
  return nameKnown('states.payment', status)
}

export function describeMethod(method: string): string {
  return nameKnown('states.paymentMethod', method)
}
