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

/** Every kind of discrepancy, with the source of each side. The documentation explains the kinds and what to do. */
export const DISCREPANCY_KINDS = {
  unexplained_growth: { ours: 'service', theirs: 'query' },
  refunded_amount_fell: { ours: 'service', theirs: 'query' },
  success_after_failure: { ours: 'service', theirs: 'notification' },
  failure_after_success: { ours: 'service', theirs: 'notification' },
  notification_mismatch: { ours: 'service', theirs: 'notification' },
  refund_without_end: { ours: 'service', theirs: 'query' },
  external_refund_unmatched: { ours: 'service', theirs: 'notification' },
  decided_against_evidence: { ours: 'person', theirs: 'service' },
  answer_went_backwards: { ours: 'earlier_query', theirs: 'query' },
  payment_unreadable: { ours: 'service', theirs: 'query' },
  amount_rounded: { ours: 'service', theirs: 'query' },
  currency_changed: { ours: 'service', theirs: 'notification' },
  payment_elsewhere: { ours: 'earlier_query', theirs: 'query' },
  payment_missing: { ours: 'earlier_query', theirs: 'query' },
  duplicate_payment: { ours: 'service', theirs: 'query' },
  ipn_contradicts_query: { ours: 'notification', theirs: 'query' },
  account_missing: { ours: 'service', theirs: 'settings' },
  ipn_missing: { ours: 'query', theirs: 'notification' },
} as const satisfies Record<string, { ours: DiscrepancySource; theirs: DiscrepancySource }>

export type DiscrepancyKind = keyof typeof DISCREPANCY_KINDS
