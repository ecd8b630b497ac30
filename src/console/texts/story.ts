import { formatMoney } from '../format-money.ts'

/** An amount with its currency, or without where it was named before. */
type Paid = { paid: string; refunded: string; expected: string; currency: string | null }

/** Texts of the story of a transaction. */
export const storyTexts = {
  title: (id: string) => `Transaction ${id}`,
  /** The state in words, as the first thing on the page. */
  headline: {
    unconfirmed: 'The gateway has not confirmed this id so far',
    none: 'No payment yet',
    inProgress: 'A payment is in progress',
    failed: 'The payment failed',
    paid: ({ paid, currency }: Paid) => `Paid, ${formatMoney(paid, currency)}`,
    paidInFull: ({ paid, currency }: Paid) => `Paid in full, ${formatMoney(paid, currency)}`,
    paidInPart: ({ paid, expected, currency }: Paid) =>
      `Paid in part, ${formatMoney(paid, currency)} of ${formatMoney(expected, null)}`,
    overpaid: ({ paid, expected, currency }: Paid) =>
      `Overpaid, ${formatMoney(paid, currency)} for an order of ${formatMoney(expected, null)}`,
    partlyRefunded: (before: string, { paid, refunded, currency }: Paid) =>
      `${before}, ${formatMoney(refunded, currency)} of ${formatMoney(paid, null)} refunded`,
    refunded: ({ paid, currency }: Paid) => `Refunded in full, ${formatMoney(paid, currency)}`,
  },
  payment: {
    paid: 'Paid',
    paidInFull: 'Paid in full',
    paidInPart: 'Paid in part',
    overpaid: 'Overpaid',
  },
  warnings: {
    duplicate: 'More than one payment succeeded: the customer probably paid twice.',
    sameOrder: 'The same order was paid by another transaction as well:',
    surplus: (amount: string) => `${amount} were paid beyond what the order needs.`,
    abandoned:
      'The gateway could not be asked for a long time, and is no longer asked by itself. Ask it now to go on.',
    unconfirmed:
      'This id is known only because a person asked for it. If the gateway does not know it either, it disappears by itself after a few days.',
    accountHeld: (by: string, reason: string) =>
      `All refunds of this account are held by ${by}: ${reason}`,
  },
  facts: {
    account: 'Account',
    order: 'Order',
    merchantTxnId: 'Your transaction id',
    expected: 'Amount of the order',
    paid: 'Paid',
    refunded: 'Refunded',
    firstSeen: 'First seen',
    updated: 'Last change',
    asOf: 'Gateway asked',
    never: 'Not answered yet',
    next: 'Asked again',
    lastError: 'Last problem',
    none: 'Not stated',
  },
  asking: 'The gateway is being asked now.',
  showCurrent: 'Show the current state',
  actions: {
    label: 'What you can do',
    ask: 'Ask the gateway now',
    refund: 'Refund',
    surplus: 'Refund the surplus',
    hold: 'Hold',
    holdPayment: 'Hold the refunds of this payment',
    holdRefund: 'Hold this refund',
    release: 'Release the hold',
    reason: 'Reason',
    holdHint: 'Nothing is sent while the hold is set. What was sent before is not affected.',
    releaseHint: 'Refunds that wait are sent at once.',
    releaseByAnother:
      'You asked for a refund that is held, and somebody else set the hold: another person has to release it.',
    releaseBySelf:
      'You asked for a refund that is held yourself. No other person may decide for this account, so you can; that is recorded.',
  },
  invalidReason: 'Enter a reason of at most 500 characters, on one line.',
  sections: {
    payments: 'Payments',
    noPayments: 'The gateway lists no payment of this transaction.',
    refunds: 'Refunds',
    noRefunds: 'No refund was requested.',
    refundsHidden: 'Your roles do not include refunds.',
    moreRefunds: 'Only the newest refunds are shown.',
    external: 'Refunds made elsewhere',
    discrepancies: 'Discrepancies',
    noDiscrepancies: 'All sources agree.',
    timeline: 'Timeline',
    timelineNote: 'oldest first',
    laterEntries: 'Later entries',
    firstEntries: 'Back to the first entries',
    messages: 'Messages as received',
    messagesNote: 'the newest, masked',
    noMessages: 'Nothing was received yet.',
    requests: 'Who asked for what',
    noRequests: 'Nothing was asked for by a person or an order system.',
    webhooks: 'Webhooks sent',
    webhooksNote: 'the newest',
    noWebhooks: 'No webhook was sent for this transaction in the last weeks.',
    order: 'Other transactions of the order',
    orderOf: (order: string) => `Order ${order}`,
    noOthers: 'No other transaction has this order id.',
    noOrder: 'No notification named an order.',
  },
  paymentFacts: {
    title: 'Payment',
    amount: 'Amount',
    method: 'Method',
    refunded: 'Refunded',
    refundable: 'Can still be refunded',
    firstSeen: 'First seen',
    hold: 'Held',
    missing: 'The gateway listed this payment once and no longer does.',
    unreadable:
      'The gateway lists this payment with values that cannot be read. The last readable ones are shown.',
  },
  heldBy: (by: string, reason: string) => `by ${by}: ${reason}`,
  columns: {
    who: 'Who',
    what: 'What',
    object: 'Of',
    event: 'Event',
    endpoint: 'Endpoint',
    result: 'Result',
    time: 'Sent',
    next: 'Next attempt',
    transaction: 'Transaction',
    state: 'State',
    paid: 'Paid',
    since: 'Since',
    ours: 'One side',
    theirs: 'Other side',
    kind: 'What disagrees',
    seen: 'Since',
    status: 'Status',
  },
  operations: {
    'POST /v1/transactions/{transactionId}/sync': 'Asked the gateway',
    'POST /v1/payments/{paymentId}/refunds': 'Asked for a refund',
    'POST /v1/transactions/{transactionId}/surplus-refund': 'Asked for a refund of the surplus',
    'POST /v1/refunds/{refundId}/approval': 'Approved',
    'POST /v1/refunds/{refundId}/decline': 'Declined',
    'POST /v1/refunds/{refundId}/cancellation': 'Cancelled',
    'POST /v1/refunds/{refundId}/resolution': 'Decided the outcome',
    'PUT /v1/holds/{target}/{id}': 'Held',
    'DELETE /v1/holds/{target}/{id}': 'Released the hold',
  },
  webhook: {
    waiting: 'Not sent yet',
    delivered: (status: number | null) => `Accepted (${status})`,
    failed: (attempt: number, error: string) => `Attempt ${attempt} failed: ${error}`,
    none: '–',
    deleted: 'Deleted endpoint',
  },
  discrepancy: {
    open: 'Open',
    agreed: 'Agreed again',
    resolved: (by: string, reason: string) => `Resolved by ${by}: ${reason}`,
    assigned: (name: string) => `Open, assigned to ${name}`,
  },
  messages: {
    notification: 'Notification',
    query: 'Answer about the payments',
    refund: 'Answer to a refund',
    empty: 'The answer had no content.',
  },
  accountGone: 'The gateway cannot be asked: the merchant account is no longer in the settings.',
  refusals: {
    not_held: 'There is no hold any more: it was released meanwhile.',
    unavailable: 'The payment has just changed. Try again.',
    same_person:
      'The hold was not released: you asked for a refund that it holds back, and somebody else set it, so another person has to release it.',
  },
} as const

/** Messages after a redirect. */
export const storyNotices = {
  asked: 'The gateway is being asked. What it answers appears on this page.',
  held: 'The hold is set. Nothing that is held is sent.',
  released: 'The hold is released.',
} as const
