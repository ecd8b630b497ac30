/** What the states of transactions, payments and refunds are called on every page. */
export const stateTexts = {
  transaction: {
    pending: 'Not paid yet',
    paid: 'Paid',
    partially_refunded: 'Partly refunded',
    refunded: 'Refunded',
    failed: 'Failed',
  },
  paidTwice: 'Paid twice',
  payment: {
    SUCCESS: 'Succeeded',
    FAILED: 'Failed',
    PROCESSING: 'In progress',
  },
  paymentMethod: {
    QR: 'QR code',
    ATM: 'Bank card (ATM)',
    CC: 'Credit card',
  },
  refund: {
    awaiting_approval: 'Waiting for approval',
    pending: 'Waiting to be sent',
    accepted: 'Accepted by the gateway',
    unknown: 'Outcome not known yet',
    succeeded: 'Refunded',
    failed: 'Failed',
    needs_review: 'Needs a decision',
    returned: 'Money came back',
  },
  externalRefund: {
    reserved: 'Notified, not in the refunded amount yet',
    matched: 'Refunded',
    part_of_first_sight: 'Refunded before the payment was first seen',
    released: 'Failed after all',
    never_happened: 'Never happened',
    own: 'Belongs to a refund made here',
  },
  held: 'Held',
  unknown: (value: string) => (value === '' ? 'Not stated' : `${value} (not a known value)`),
} as const
