/** Texts of the page of one discrepancy. */
export const discrepancyPageTexts = {
  meaning: 'What it means',
  steps: 'What to do',
  sides: 'Both sides',
  about: 'About it',
  facts: {
    severity: 'Severity',
    account: 'Merchant account',
    transaction: 'Transaction',
    order: 'Order',
    payment: 'Payment',
    refund: 'Refund',
    firstSeen: 'First seen',
    lastSeen: 'Last seen',
    times: 'Observed',
    timesText: (times: number) => (times === 1 ? 'once' : `${times} times`),
    state: 'State',
  },
  severities: {
    high: 'Money may have moved otherwise than is recorded',
    medium: 'A customer or an order waits',
    low: 'Only the records differ',
  },
  open: 'Open',
  resolved: 'Resolved',
  agreed: 'Both sides agree again',
  resolvedBy: (name: string, reason: string) => `by ${name}: ${reason}`,
  openRefund: 'Open the refund',
  resolve: {
    title: 'Resolve it',
    lead: 'It stays resolved while both sides stay the same. Your name and the reason are recorded.',
    enters: (amount: string) => `Resolving enters ${amount} as a refund made elsewhere.`,
    entersNothing: 'No increase is left that nothing explains, so resolving enters nothing.',
    setsAside: 'Resolving sets the entry aside until its text changes.',
    reason: 'Reason',
    submit: 'Resolve',
    refundFirst: 'Decide the refund instead, if it needs a decision: that ends this as well.',
  },
  external: {
    title: 'Refunds made elsewhere',
    lead: 'Known from the gateway’s notifications. Each is deducted from what can be refunded until it is explained.',
    amount: 'Amount',
    requestId: 'Request id',
    notified: 'Notified',
    state: 'State',
    entered: 'Entered by a person',
    decide: (amount: string) => `Decide the refund of ${amount}`,
    outcome: 'What it was',
    outcomes: {
      matched: 'Part of the increase that nothing explains',
      part_of_first_sight: 'Refunded before the payment was first seen',
      never_happened: 'It never happened',
    },
    notPossible: (outcome: string, reason: string) => `${outcome}: ${reason}`,
    obstacles: {
      own: 'it is a refund made here; decide that one',
      already: 'it is decided so already',
      nothing_deducted: 'nothing is deducted for it any more',
    },
    reason: 'Reason',
    submit: 'Record the decision',
  },
  ownRefund: {
    another:
      'You asked for a refund that this holds back, or it was asked for in your name: another person has to decide this.',
    self: 'You asked for a refund that this holds back yourself. No other person may decide for this account, so you can; that is recorded.',
  },
  refused: {
    same_person:
      'Nothing was decided: you asked for a refund that this holds back, so another person has to decide.',
    notFitting:
      'This does not fit the gateway’s figures: no such amount is left unexplained. Choose another outcome.',
  },
} as const

export const discrepancyNotices = {
  discrepancyResolved: 'Resolved.',
  externalDecided: 'The decision about the refund made elsewhere is recorded.',
} as const
