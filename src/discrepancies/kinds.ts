/** Who says what: the service's own books, the newest answer to a query, an earlier one, a notification. */
export type Source = 'service' | 'query' | 'earlier_query' | 'notification'

/**
 * Every kind of disagreement, with who stands on each side. What a kind means and what to do about it
 * stands in the README's table.
 */
export const KINDS = {
  unexplained_growth: { ours: 'service', theirs: 'query' },
  refunded_amount_fell: { ours: 'service', theirs: 'query' },
  success_after_failure: { ours: 'service', theirs: 'notification' },
  failure_after_success: { ours: 'service', theirs: 'notification' },
  notification_mismatch: { ours: 'service', theirs: 'notification' },
  refund_without_end: { ours: 'service', theirs: 'query' },
  answer_went_backwards: { ours: 'earlier_query', theirs: 'query' },
  payment_missing: { ours: 'earlier_query', theirs: 'query' },
  duplicate_payment: { ours: 'service', theirs: 'query' },
  ipn_contradicts_query: { ours: 'notification', theirs: 'query' },
  ipn_missing: { ours: 'query', theirs: 'notification' },
} as const satisfies Record<string, { ours: Source; theirs: Source }>

export type Kind = keyof typeof KINDS
