/**
 * Where a side comes from: this service's records, the newest answer to a query, an earlier answer, a notification,
 * the settings, a person's decision.
 */
export type DiscrepancySource =
  | 'service'
  | 'query'
  | 'earlier_query'
  | 'notification'
  | 'settings'
  | 'person'

/** The source of each side of a kind, and whether it is about a refund: then reading it takes `refunds:read`. */
type KindFacts = { ours: DiscrepancySource; theirs: DiscrepancySource; namesRefund?: true }

/** Every kind of discrepancy. The documentation explains the kinds and what to do. */
export const DISCREPANCY_KINDS = {
  unexplained_growth: { ours: 'service', theirs: 'query' },
  refunded_amount_fell: { ours: 'service', theirs: 'query' },
  success_after_failure: { ours: 'service', theirs: 'notification', namesRefund: true },
  failure_after_success: { ours: 'service', theirs: 'notification', namesRefund: true },
  notification_mismatch: { ours: 'service', theirs: 'notification', namesRefund: true },
  refund_without_end: { ours: 'service', theirs: 'query', namesRefund: true },
  external_refund_unmatched: { ours: 'service', theirs: 'notification', namesRefund: true },
  decided_against_evidence: { ours: 'person', theirs: 'service', namesRefund: true },
  answer_went_backwards: { ours: 'earlier_query', theirs: 'query' },
  payment_unreadable: { ours: 'service', theirs: 'query' },
  amount_rounded: { ours: 'service', theirs: 'query' },
  order_conflict: { ours: 'notification', theirs: 'notification' },
  amount_mismatch: { ours: 'notification', theirs: 'query' },
  currency_changed: { ours: 'service', theirs: 'notification' },
  payment_elsewhere: { ours: 'earlier_query', theirs: 'query' },
  payment_missing: { ours: 'earlier_query', theirs: 'query' },
  order_paid_twice: { ours: 'service', theirs: 'query' },
  duplicate_payment: { ours: 'service', theirs: 'query' },
  ipn_contradicts_query: { ours: 'notification', theirs: 'query' },
  account_missing: { ours: 'service', theirs: 'settings' },
  ipn_missing: { ours: 'query', theirs: 'notification' },
} as const satisfies Record<string, KindFacts>

export type DiscrepancyKind = keyof typeof DISCREPANCY_KINDS

const OF_REFUNDS = Object.entries<KindFacts>(DISCREPANCY_KINDS).flatMap(
  ([kind, { namesRefund }]) => (namesRefund ? [kind] : []),
)

/** Whether reading a discrepancy takes the scope `refunds:read`, because it is about a refund. */
export function namesRefund({
  kind,
  refundId,
}: {
  kind: string
  refundId: string | null
}): boolean {
  return refundId !== null || OF_REFUNDS.includes(kind)
}

const LISTED = OF_REFUNDS.map((kind) => `'${kind}'`).join(', ')

/** `namesRefund` in SQL, for statements that read `discrepancies` as `d`. */
export const NAMES_REFUND_SQL = `(d.refund_id is not null or d.kind in (${LISTED}))`

/** The same for statements that read the events of discrepancies, and others, from `events`. */
export const EVENT_NAMES_REFUND_SQL = `(case when type in ('discrepancy.found', 'discrepancy.updated')
  then data ->> 'refundId' is not null or data ->> 'kind' in (${LISTED}) else false end)`
