/** Texts of a refund: what is known about it, and what happens next. */
export const refundTexts = {
  title: (amount: string) => `Refund of ${amount}`,
  facts: {
    id: 'Refund id',
    payment: 'Payment',
    receiver: 'Receiver',
    reason: 'Reason',
    noReason: 'None given',
    requestedBy: 'Asked for by',
    requestedAt: 'Asked for',
    approval: 'Approval',
    decision: 'Decision',
    reference: "Gateway's reference",
    noReference: 'None yet',
    fee: 'Fee',
    failure: 'Why it failed',
    hold: 'Held',
    next: 'What happens next',
    source: 'Known from',
  },
  requester: (name: string, onBehalfOf: string | null) =>
    onBehalfOf === null ? name : `${name}, for ${onBehalfOf}`,
  receiver: (name: string, number: string, code: string) => `${name}, ${number}, ${code}`,
  approval: {
    open: 'Needed from a second person',
    approved: (by: string, reason: string | null) =>
      reason === null ? `Approved by ${by}` : `Approved by ${by}: ${reason}`,
    declined: (by: string, reason: string | null) =>
      reason === null ? `Declined by ${by}` : `Declined by ${by}: ${reason}`,
  },
  decision: {
    succeeded: (by: string, reason: string) => `${by} decided that it succeeded: ${reason}`,
    failed: (by: string, reason: string) => `${by} decided that it failed: ${reason}`,
    returned: (by: string, reason: string) => `${by} decided that the money came back: ${reason}`,
    other: (by: string, reason: string) => `${by} decided: ${reason}`,
    self: 'Decided, or no longer held back, by the person who asked for it or had decided it before, because no other person could.',
  },
  referenceSource: {
    notification: 'from its notification',
    answer: 'from the answer to the request',
  },
  inferred:
    'Concluded from the refunded amount of the payment. Its amount stays taken until a notification or a person confirms it.',
  failure: {
    gateway: (code: string, message: string) =>
      message === ''
        ? `The gateway refused it (code ${code})`
        : `The gateway refused it (code ${code}): ${message}`,
    service: (message: string) => `It was not carried out: ${message}`,
    merchant: (message: string) => `It was withdrawn: ${message}`,
  },
  external: {
    notification: 'A notification of the gateway',
    person: 'A person entered it',
  },
  /** What can be done on the page of the refund. */
  offers: {
    decide: 'Decide what happened',
    confirm: 'Say whether it happened',
    correct: 'Decide it otherwise',
    approve: 'Approve or decline',
    cancel: 'Cancel this refund',
  },
  /** Some end with a time, which follows them. */
  next: {
    awaitingApproval: 'A second person has to approve it. Without an approval it fails on',
    held: 'Nothing is sent until the hold is released. If it is not sent before, it fails on',
    pending: 'It is sent as soon as the gateway has been asked about the payment; next on',
    pendingNow: 'It is sent as soon as the gateway has been asked about the payment.',
    sending: 'It is being sent.',
    accepted: 'The gateway has accepted it. The service asks until the refund shows; next on',
    acceptedNow: 'The gateway has accepted it. The service asks until the refund shows.',
    unknown:
      'It is not known whether the gateway carries it out. The service asks again; otherwise a person decides from',
    succeeded: 'Nothing. The gateway has paid it out; a bank may need some days to book it.',
    inferred:
      'Its notification is awaited. Until it arrives, or a person confirms that the refund happened, its amount stays reserved.',
    failed: 'Nothing. The amount can be refunded again.',
    review: 'A person has to decide what happened to it.',
    returned: 'Nothing. The money came back to the account.',
  },
} as const
