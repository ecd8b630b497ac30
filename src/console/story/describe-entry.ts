import type { TimelineRow } from '../../transactions/timeline.ts'
import { formatMoney } from '../format-money.ts'
import { TEXTS } from '../texts/en.ts'
import { nameKind } from '../words.ts'

type Entry = TimelineRow['entry']
type Actor = keyof typeof TEXTS.timeline.actors

/** An entry of the timeline in words. */
export type EntryWords = {
  actor: Actor
  /** What happened, in a sentence without its subject. */
  title: string
  /** What else is known about it. */
  details: readonly string[]
  /** What was received, as text. */
  received?: string | null
}

const { ipn, query, attempt, http, took, fields, subject, ...words } = TEXTS.timeline

/** Describes an entry of the timeline: who did what, and what came of it. */
export function describeEntry(entry: Entry, currency: string | null): EntryWords {
  switch (entry.type) {
    case 'ipn':
      return describeNotification(entry, currency)
    case 'query': {
      const title = pick(query, entry.outcome)
      return { actor: 'service', title, details: listAnswer(entry), received: entry.received }
    }
    case 'refund_attempt': {
      const outcome = pick(attempt, entry.outcome ?? 'open')
      const details = [ipn.ofRefund(entry.refundId), ...listAnswer(entry)]
      return { actor: 'service', title: outcome, details, received: entry.received }
    }
    case 'change':
      return {
        actor: 'change',
        title: describeChange(entry, currency),
        details: [pick(words.causes, entry.cause)],
      }
    case 'discrepancy': {
      const details = [words.disagree(entry.ours, entry.theirs)]
      return { actor: 'finding', title: nameKind(entry.kind), details }
    }
    case 'removed':
      return { actor: 'service', title: words.removed(entry.deliveries), details: [] }
  }
}

function describeNotification(
  entry: Extract<Entry, { type: 'ipn' }>,
  currency: string | null,
): EntryWords {
  const { code, message, amount, paymentId, requestId, deliveries } = entry
  return {
    actor: 'gateway',
    title: entry.kind === 'refund' ? ipn.refund : ipn.payment,
    details: [
      ...(code === null ? [] : [words.code(code, message)]),
      ...(amount === null ? [] : [ipn.amount(formatMoney(amount, currency))]),
      ...(paymentId === null ? [] : [ipn.ofPayment(paymentId)]),
      ...(requestId === null ? [] : [ipn.ofRefund(requestId)]),
      pick(ipn.signatures, entry.signature),
      ...(entry.recut ? [ipn.recut] : []),
      ...(deliveries > 1 ? [ipn.deliveries(deliveries)] : []),
      ipn.from(entry.address),
    ],
  }
}

function listAnswer(
  entry: Pick<
    Extract<Entry, { type: 'refund_attempt' }>,
    'code' | 'message' | 'httpStatus' | 'durationMs'
  >,
): string[] {
  const { code, message, httpStatus, durationMs } = entry
  return [
    ...(code === null ? [message ?? ''] : [words.code(code, message)]),
    ...(httpStatus === null ? [] : [http(httpStatus)]),
    ...(durationMs === null ? [] : [took(durationMs)]),
  ].filter((text) => text !== '')
}

function describeChange(
  entry: Extract<Entry, { type: 'change' }>,
  currency: string | null,
): string {
  const { paymentId, refundId, before, after } = entry
  const field = pick(fields, entry.field)
  const of =
    refundId !== null
      ? subject.refund(refundId)
      : paymentId === null
        ? subject.transaction
        : subject.payment(paymentId)
  const from = nameValue(entry, before, currency)
  const to = nameValue(entry, after, currency)
  if (from === null && to === null) return words.touched(of, field)
  if (from === null) return words.first(of, field, to ?? '')
  if (from === to) return words.confirmed(of, field, from)
  return words.changed(of, field, from, to ?? words.nothing)
}

const AMOUNTS: readonly string[] = ['amount', 'refundedAmount', 'countedAmount', 'countedRefunded']

/** The states that people know by other names, and amounts as they are written elsewhere. */
function nameValue(
  { field, refundId }: Extract<Entry, { type: 'change' }>,
  value: string | null,
  currency: string | null,
): string | null {
  if (value === null || value === '') return null
  const { states } = TEXTS
  if (AMOUNTS.includes(field)) return formatMoney(value, currency)
  if (field === 'state') return pick(states.transaction, value)
  if (field === 'status') {
    return pick(refundId === null ? states.payment : { ...states.refund, ...words.steps }, value)
  }
  if (field === 'external_refund') return pick(states.externalRefund, value)
  return value
}

/** What is not in the catalogue is shown as it is stored. */
function pick(texts: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(texts, name) ? (texts[name] ?? name) : name
}
