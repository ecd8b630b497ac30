import { createHash } from 'node:crypto'
import type { OrderIds } from '../db/order-facts.ts'
import type { discrepancies } from '../db/schema.ts'

export type DiscrepancyRow = typeof discrepancies.$inferSelect & OrderIds

type Subject = {
  merchantCode: string
  transactionId: string
  kind: DiscrepancyKind
  paymentId?: string | undefined
  refundId?: string | undefined
}

/** Both sides are text; amounts in it are exact decimals. */
export type NewDiscrepancy = Subject & { ours: string; theirs: string }

/** A discrepancy that was recorded for the first time. */
export type RecordedDiscrepancy = NewDiscrepancy & { row: DiscrepancyRow }

/** Selects the open discrepancies to resolve, because their sides agree again. A missing member matches any value. */
export type ResolvedDiscrepancy = Subject & { ours?: string | undefined }

/** Both sides of a discrepancy are part of an index, whose rows are at most 2,700 bytes long. */
const MAX_SIDE = 200

/** Shortens the text of a side of a discrepancy; two that differ stay different. */
export function shortenSide(text: string): string {
  if (text.length <= MAX_SIDE) return text
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${text.slice(0, MAX_SIDE).toWellFormed()}… (SHA-256 ${digest}…)`
}

/**
 * `high`: money may have moved otherwise than recorded, or goods may leave unpaid. `medium`: a customer or an order
 * waits. `low`: only the records differ.
 */
export const SEVERITIES = ['high', 'medium', 'low'] as const

type Severity = (typeof SEVERITIES)[number]

/** Where a side comes from. `service` is this service's records, `query` the newest answer, `person` a decision. */
type Source = 'service' | 'query' | 'earlier_query' | 'notification' | 'settings' | 'person'

/** `namesRefund`: it is about a refund, so reading it takes `refunds:read`. */
type KindFacts = { ours: Source; theirs: Source; severity: Severity; namesRefund?: true }

function ofRefund(ours: Source, theirs: Source, severity: Severity): KindFacts {
  return { ours, theirs, severity, namesRefund: true }
}

export const DISCREPANCY_KINDS = {
  unexplained_growth: { ours: 'service', theirs: 'query', severity: 'high' },
  refunded_amount_fell: { ours: 'service', theirs: 'query', severity: 'high' },
  success_after_failure: ofRefund('service', 'notification', 'high'),
  failure_after_success: ofRefund('service', 'notification', 'high'),
  notification_mismatch: ofRefund('service', 'notification', 'medium'),
  refund_without_end: ofRefund('service', 'query', 'medium'),
  refund_without_growth: ofRefund('service', 'query', 'medium'),
  external_refund_unmatched: ofRefund('service', 'notification', 'medium'),
  external_refund_contradicted: ofRefund('service', 'notification', 'high'),
  external_refund_unreadable: ofRefund('service', 'notification', 'high'),
  refund_rule_missing: ofRefund('service', 'service', 'high'),
  decided_against_evidence: ofRefund('person', 'service', 'high'),
  answer_went_backwards: { ours: 'earlier_query', theirs: 'query', severity: 'high' },
  payment_unreadable: { ours: 'service', theirs: 'query', severity: 'medium' },
  amount_rounded: { ours: 'service', theirs: 'query', severity: 'low' },
  order_conflict: { ours: 'notification', theirs: 'notification', severity: 'medium' },
  amount_mismatch: { ours: 'notification', theirs: 'query', severity: 'high' },
  currency_changed: { ours: 'service', theirs: 'notification', severity: 'high' },
  payment_elsewhere: { ours: 'earlier_query', theirs: 'query', severity: 'medium' },
  payment_moved: { ours: 'earlier_query', theirs: 'query', severity: 'high' },
  payment_missing: { ours: 'earlier_query', theirs: 'query', severity: 'high' },
  order_paid_twice: { ours: 'service', theirs: 'query', severity: 'medium' },
  duplicate_payment: { ours: 'service', theirs: 'query', severity: 'medium' },
  ipn_contradicts_query: { ours: 'notification', theirs: 'query', severity: 'low' },
  account_missing: { ours: 'service', theirs: 'settings', severity: 'medium' },
  ipn_missing: { ours: 'query', theirs: 'notification', severity: 'low' },
} satisfies Record<string, KindFacts>

export type DiscrepancyKind = keyof typeof DISCREPANCY_KINDS

/** Kinds that stay resolved only while they are not found: whoever resolves growth enters what explains it. */
export const NEVER_SETTLED_BY_WORD: readonly DiscrepancyKind[] = ['unexplained_growth']

const KNOWN = new Map(Object.entries<KindFacts>(DISCREPANCY_KINDS))

/** A kind of another release is not taken as harmless. */
export function describeKind(kind: string): KindFacts {
  return KNOWN.get(kind) ?? { ours: 'service', theirs: 'query', severity: 'medium' }
}

export const rateKind = (kind: string): Severity => describeKind(kind).severity

const OF_REFUNDS = [...KNOWN].flatMap(([kind, { namesRefund }]) =>
  namesRefund ? [`'${kind}'`] : [],
)
const LISTED = OF_REFUNDS.join(', ')

/** Whether reading a row `d` of `discrepancies` takes the scope `refunds:read`, because it is about a refund. */
export const NAMES_REFUND_SQL = `(d.refund_id is not null or d.kind in (${LISTED}))`

/** The same of a row of `events`, which may be about something else than a discrepancy. */
export const EVENT_NAMES_REFUND_SQL = `(case when type in ('discrepancy.found', 'discrepancy.updated')
  then data ->> 'refundId' is not null or data ->> 'kind' in (${LISTED}) else false end)`
