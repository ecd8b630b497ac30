/** Texts of the timeline: who did what. */
export const timelineTexts = {
  actors: {
    gateway: 'Gateway',
    service: 'Service',
    change: 'Change',
    finding: 'Discrepancy',
  },
  ipn: {
    payment: 'notified a payment',
    refund: 'notified a refund',
    deliveries: (count: number) => `delivered ${count} times`,
    last: 'last on',
    signatures: {
      verified: 'signature verified',
      missing: 'without a signature',
      wrong: 'with a wrong signature',
      unverifiable: 'with a signature that could not be checked',
    },
    recut: 'the same signature came with other values as well',
    from: (address: string) => `from ${address}`,
    amount: (amount: string) => `amount ${amount}`,
    ofPayment: (id: string) => `payment ${id}`,
    ofRefund: (id: string) => `refund ${id}`,
  },
  code: (code: string, message: string | null) =>
    message === null || message === '' ? `code ${code}` : `code ${code}: ${message}`,
  query: {
    answered: 'asked the gateway, and got its answer',
    rejected: 'asked the gateway, and got a refusal',
    unavailable: 'could not reach the gateway',
    unknown: 'asked the gateway, and got no usable answer',
  },
  attempt: {
    answered: 'sent the refund, and the gateway accepted it',
    rejected: 'sent the refund, and the gateway refused it',
    unavailable: 'could not reach the gateway with the refund',
    unknown: 'sent the refund, and got no usable answer',
    open: 'began to send the refund',
  },
  http: (status: number) => `HTTP ${status}`,
  took: (ms: number) => `${ms} ms`,
  received: 'What was received',
  removed: (deliveries: number) =>
    deliveries === 1
      ? 'Older entries were deleted, with one delivery of a notification among them.'
      : `Older entries were deleted, with ${deliveries} deliveries of notifications among them.`,
  fields: {
    status: 'Status',
    state: 'State',
    amount: 'Amount',
    refundedAmount: 'Refunded amount',
    countedAmount: 'Amount that counts for refunds',
    countedRefunded: 'Refunded amount that counts for refunds',
    paymentMethod: 'Method',
    missing: 'No longer listed',
    unreadable: 'Unreadable',
    hold: 'Hold',
    transactionId: 'Transaction',
    discrepancy: 'Discrepancy',
    discrepancy_note: 'Note on a discrepancy',
    discrepancy_assignee: 'Discrepancy assigned to',
    external_refund: 'Refund made elsewhere',
    notification: 'Notification of the refund',
    freed: 'Amount that can be refunded',
  },
  subject: {
    transaction: 'Transaction',
    payment: (id: string) => `Payment ${id}`,
    refund: (id: string) => `Refund ${id}`,
  },
  changed: (subject: string, field: string, before: string, after: string) =>
    `${subject}: ${field}: ${before} → ${after}`,
  first: (subject: string, field: string, after: string) => `${subject}: ${field}: ${after}`,
  /** Decided as what it was already. */
  confirmed: (subject: string, field: string, after: string) =>
    `${subject}: ${field}: ${after}, confirmed`,
  touched: (subject: string, field: string) => `${subject}: ${field}`,
  /** Steps of a refund that its status does not show. */
  steps: { sending: 'Being sent' },
  causes: { query: 'as the gateway answered when asked' },
  nothing: 'none',
  disagree: (ours: string, theirs: string) => `${ours} / ${theirs}`,
} as const
