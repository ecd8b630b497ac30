import type { Config } from '../config/config.ts'
import { OUTCOMES } from '../decisions/obstacles.ts'
import { compareAmounts } from '../money.ts'
import type { Tone } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { ExternalState } from '../refunds/external-view.ts'
import type { FoundRefund } from '../refunds/find.ts'
import { isFreed } from '../refunds/lifecycle.ts'
import type { RefundView } from '../refunds/view.ts'
import type { TransactionView } from '../transactions/view.ts'
import { count, findIn, formatMoney, formatNumber, nameIn, say, t } from './view.ts'

const UNITS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000 }

/** Formats a duration in its largest unit, rounded down: `3 days`. Less than two days are in hours. */
export function formatDuration(ms: number): string {
  const { days, hours, minutes } = UNITS
  const unit = ms >= 2 * days ? 'days' : ms >= hours ? 'hours' : 'minutes'
  if (ms < minutes) return t('durations.moment')
  return count(`durations.${unit}`, Math.floor(ms / UNITS[unit]))
}

/** Formats the time that is left, rounded up, so that it is over when the words promise it. */
export function formatTimeLeft(ms: number): string {
  const unit = Object.values(UNITS).find((one) => ms > one) ?? UNITS.minutes
  return formatDuration(Math.ceil(ms / unit) * unit)
}

export const nameKind = (kind: string) => nameIn('discrepancies.kinds', kind)

export const nameSource = (source: string) => nameIn('discrepancies.sources', source)

export const describeSide = ({ source, says }: { source: string; says: string }) =>
  withMore(nameSource(source), say(says))

/** Names a value; an undocumented one is said to be unknown, and shown as it came. */
export function nameKnown(group: string, value: string): string {
  if (value === '') return t('states.notStated')
  return findIn(group, value) ?? t('states.unknown', { value })
}

/** Says what somebody did. The audit log names a route of the API or the console, or a command. */
export function nameOperation(operation: string): string {
  const bare = operation.replace(/ \/(?:v1|console)\//, ' ').replaceAll(/\/\{\w+\}/g, '')
  const known = nameIn('audit.operations', bare)
  return known === bare ? operation : known
}

export const withMore = (text: string, more: string | null) => (more ? `${text}: ${more}` : text)

/** Says the state and the amounts of a transaction: "Paid in full, 250,000 VND". */
export function describeState(shown: TransactionView): string {
  const { state, currency, payments, paidAmount, expectedAmount } = shown
  const paid = formatMoney(paidAmount, currency)
  const refunded = formatMoney(shown.refundedAmount, currency)
  const compared = comparePaid(shown)
  switch (state) {
    case 'pending': {
      const isKnown = shown.sync.status !== 'unconfirmed'
      const known = payments.length === 0 ? 'none' : 'inProgress'
      return t(`story.headline.${isKnown ? known : 'unconfirmed'}`)
    }
    case 'failed': {
      const tried = payments.at(-1)
      if (tried === undefined) return t('story.headline.failed')
      return t('story.headline.failedOf', { amount: formatMoney(tried.amount, currency) })
    }
    case 'paid': {
      if (!shown.duplicatePayment) {
        if (isOrderPaidTwice(shown)) return t('story.headline.orderPaidTwice', { paid })
        const expected = formatNumber(expectedAmount ?? '0', currency)
        return t(`story.headline.${compared}`, { paid, expected })
      }
      if (expectedAmount === null) return t('story.headline.paidTwice', { paid })
      const expected = formatMoney(expectedAmount, currency)
      return t('story.headline.paidTwiceOf', { paid, expected })
    }
    case 'partially_refunded': {
      const before = t(`story.payment.${compared}`)
      const amounts = { refunded, paid: formatNumber(paidAmount, currency) }
      return t('story.headline.partlyRefunded', { ...amounts, before })
    }
    case 'refunded':
      return t('story.headline.refunded', { paid })
  }
}

type Paid = Pick<
  TransactionView,
  'state' | 'paidAmount' | 'expectedAmount' | 'duplicatePayment' | 'sameOrder'
>

/** Compares what was paid with the amount of the order, if a verified notification states it. */
function comparePaid({ paidAmount, expectedAmount }: Paid) {
  if (expectedAmount === null) return 'paid'
  const compared = compareAmounts(paidAmount, expectedAmount)
  if (compared === 0) return 'paidInFull'
  return compared < 0 ? 'paidInPart' : 'overpaid'
}

/** Whether another transaction paid the order as well. Parts of an order are no double payment. */
function isOrderPaidTwice(shown: Paid): boolean {
  return shown.sameOrder.length > 0 && comparePaid(shown) !== 'paidInPart'
}

export function nameRequester(refund: { requestedBy: string; onBehalfOf: string | null }): string {
  const { requestedBy: name, onBehalfOf } = refund
  return onBehalfOf === null ? name : t('refunds.requester', { name, onBehalfOf })
}

export function describeApproval(of: NonNullable<RefundView['approval']>): string {
  const { decision, by, reason } = of
  if (decision === null || by === null) return t('refunds.approval.open')
  return withMore(t(`refunds.approval.${decision}`, { by }), reason)
}

export function describeResolution(of: NonNullable<RefundView['resolution']>): string {
  const { outcome, by, reason } = of
  const known = OUTCOMES.find((one) => one === outcome)
  return t(`refunds.decision.${known ?? 'other'}`, { by, reason })
}

const TYPED_REASONS: readonly string[] = ['resolved', 'declined', 'cancelled']

export function describeFailure({ source, code, message }: NonNullable<RefundView['failure']>) {
  // A reason that a person typed stays as it is.
  const isTyped = TYPED_REASONS.includes(code) && !message.startsWith('declined by ')
  const said = isTyped ? message : say(message)
  return source === 'gateway'
    ? withMore(t('refunds.failure.gateway', { code }), said)
    : t(`refunds.failure.${source}`, { message: said })
}

export function describeReceiver(to: NonNullable<RefundView['receiver']>): string {
  const { accountName: name, accountNumber: number, swiftCode: code } = to
  return t('refunds.receiver', { name, number, code })
}

type Deadlines = Pick<
  Config,
  | 'REFUNDS_ENABLED'
  | 'REFUND_APPROVAL_WITHIN_MS'
  | 'REFUND_SEND_WITHIN_MS'
  | 'REFUND_RESOLVE_FOR_MS'
>

type RefundFacts = Pick<
  FoundRefund['refund'],
  | 'status'
  | 'inferred'
  | 'attempts'
  | 'requestedAt'
  | 'approvedAt'
  | 'lastSentAt'
  | 'dueAt'
  | 'returnSightings'
>

/** What happens next. `at` (ISO 8601) is shown behind the text. */
export type NextStep = { text: string; at?: string }

/** @param isHeld whether the refund, its payment or its account is held */
export function describeNext(refund: RefundFacts, isHeld: boolean, settings: Deadlines): NextStep {
  const { status, requestedAt, approvedAt, lastSentAt, dueAt } = refund
  const after = (time: string, ms: number) => new Date(Date.parse(toIso(time)) + ms).toISOString()
  switch (status) {
    case 'awaiting_approval': {
      const at = after(requestedAt, settings.REFUND_APPROVAL_WITHIN_MS)
      return { text: t('refunds.next.awaitingApproval'), at }
    }
    case 'unknown': {
      const at = after(lastSentAt ?? requestedAt, settings.REFUND_RESOLVE_FOR_MS)
      return { text: t('refunds.next.unknown'), at }
    }
    case 'pending':
    case 'accepted': {
      const failsAt = after(approvedAt ?? requestedAt, settings.REFUND_SEND_WITHIN_MS)
      if (status === 'pending' && refund.attempts === 0 && !settings.REFUNDS_ENABLED) {
        return { text: t('refunds.next.disabled'), at: failsAt }
      }
      if (isHeld && status === 'pending') return { text: t('refunds.next.held'), at: failsAt }
      // A time in the past is left out.
      const at = dueAt === null ? undefined : toIso(dueAt)
      return at === undefined || Date.parse(at) <= Date.now()
        ? { text: t(`refunds.next.${status}Now`) }
        : { text: t(`refunds.next.${status}`), at }
    }
    case 'succeeded':
      return { text: t(refund.inferred ? 'refunds.next.inferred' : 'refunds.next.succeeded') }
    case 'returned':
      return { text: t(isFreed(refund) ? 'refunds.next.returned' : 'refunds.next.returnedOnce') }
    case 'sending':
    case 'failed':
    case 'needs_review':
      return { text: t(`refunds.next.${status}`) }
  }
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

export type Sign = [words: string, tone: Tone]

/** A double payment is shown in place of the state. */
export function signTransaction(transaction: Paid): Sign {
  const { state, duplicatePayment } = transaction
  const isPaidTwice = duplicatePayment || isOrderPaidTwice(transaction)
  if (isPaidTwice && state === 'paid') return [t('states.paidTwice'), 'warn']
  return [t(`states.transaction.${state}`), TRANSACTION_TONES[state]]
}

export const signRefund = (status: RefundView['status']): Sign => {
  return [t(`states.refund.${status}`), REFUND_TONES[status]]
}

export const signExternal = (state: ExternalState): Sign => {
  return [t(`states.externalRefund.${state}`), state === 'matched' ? 'good' : 'soft']
}

export const signPayment = (status: string): Sign => {
  return [nameKnown('states.payment', status), PAYMENT_TONES[status] ?? 'warn']
}

export const describeMethod = (method: string) => nameKnown('states.paymentMethod', method)
