import type { TimelineEntry } from './story.ts'
import type { NameIn } from './texts/text.ts'
import { count, findIn, formatMoney, keepTexts, nameIn, say, t } from './view.ts'
import { nameKind, withMore } from './words.ts'

type EntryWords = {
  actor: NameIn<'timeline.actors'>
  /** A sentence without its subject. */
  title: string
  details: readonly string[]
  /** What was received, as a text. */
  received?: string | null
}

export function describeEntry(entry: TimelineEntry, currency: string | null): EntryWords {
  switch (entry.type) {
    case 'ipn':
      return describeNotification(entry)
    case 'query': {
      const title = nameIn('timeline.query', entry.outcome)
      return { actor: 'service', title, details: listAnswer(entry), received: entry.received }
    }
    case 'refund_attempt': {
      const outcome = nameIn('timeline.attempt', entry.outcome ?? 'open')
      const details = [t('timeline.ipn.ofRefund', { id: entry.refundId }), ...listAnswer(entry)]
      return { actor: 'service', title: outcome, details, received: entry.received }
    }
    case 'change':
      return {
        actor: 'change',
        title: describeChange(entry, currency),
        details: [findIn('timeline.causes', entry.cause) ?? say(entry.cause)],
      }
    case 'discrepancy': {
      const details = [t('timeline.disagree', { ours: say(entry.ours), theirs: say(entry.theirs) })]
      return { actor: 'finding', title: nameKind(entry.kind), details }
    }
  }
}

type Of<Type extends TimelineEntry['type']> = Extract<TimelineEntry, { type: Type }>

function describeNotification(entry: Of<'ipn'>): EntryWords {
  const { code, message, amount, currency, paymentId, requestId, deliveries } = entry
  return {
    actor: 'gateway',
    title: entry.kind === 'refund' ? t('timeline.ipn.refund') : t('timeline.ipn.payment'),
    details: keepTexts([
      code !== null && withMore(t('timeline.code', { code }), message),
      amount !== null && t('timeline.ipn.amount', { amount: formatMoney(amount, currency) }),
      paymentId !== null && t('timeline.ipn.ofPayment', { id: paymentId }),
      requestId !== null && t('timeline.ipn.ofRefund', { id: requestId }),
      nameIn('timeline.ipn.signatures', entry.signature),
      entry.recut && t('timeline.ipn.recut'),
      deliveries > 1 && count('timeline.ipn.deliveries', deliveries),
      t('timeline.ipn.from', { address: entry.address }),
    ]),
  }
}

function listAnswer(
  entry: Pick<Of<'refund_attempt'>, 'code' | 'message' | 'httpStatus' | 'durationMs'>,
): string[] {
  const { code, message, httpStatus, durationMs } = entry
  return keepTexts([
    code === null ? message : withMore(t('timeline.code', { code }), message),
    httpStatus !== null && t('timeline.http', { status: httpStatus }),
    durationMs !== null && t('timeline.took', { ms: durationMs }),
  ])
}

function describeChange(entry: Of<'change'>, currency: string | null): string {
  const { paymentId, refundId, before, after } = entry
  const field = nameIn('field', entry.field)
  const id = refundId ?? paymentId
  const of =
    id === null
      ? t('timeline.subject.transaction')
      : t(`timeline.subject.${refundId === null ? 'payment' : 'refund'}`, { id })
  const from = nameValue(entry, before, currency)
  const to = nameValue(entry, after, currency)
  if (from === null && to === null) return t('timeline.touched', { subject: of, field })
  if (from === null) return t('timeline.first', { subject: of, field, after: to ?? '' })
  if (from === to) return t('timeline.confirmed', { subject: of, field, after: from })
  const then = to ?? t('timeline.nothing')
  return t('timeline.changed', { subject: of, field, before: from, after: then })
}

const AMOUNTS: readonly string[] = ['amount', 'refundedAmount', 'countedAmount', 'countedRefunded']

/** Names states as the rest of the console does, and formats amounts. */
function nameValue(
  { field, refundId }: Of<'change'>,
  value: string | null,
  currency: string | null,
): string | null {
  if (value === null || value === '') return null
  if (AMOUNTS.includes(field)) return formatMoney(value, currency)
  if (field === 'state') return nameIn('states.transaction', value)
  if (field === 'status' && refundId === null) return nameIn('states.payment', value)
  if (field === 'status') {
    return nameIn(value === 'sending' ? 'timeline.steps' : 'states.refund', value)
  }
  if (field === 'external_refund') return nameIn('states.externalRefund', value)
  return value
}
