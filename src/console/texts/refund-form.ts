/** Offered by accounts that keep no list of their own. */
export const DEFAULT_REASONS = [
  'Goods returned',
  'Order cancelled',
  'Goods not delivered',
  'Paid twice',
  'Charged too much',
  'Goodwill',
] as const

/** Texts of the pages that refund a payment, or what was paid beyond one success of an order. */
export const refundFormTexts = {
  paymentTitle: (paymentId: string) => `Refund payment ${paymentId}`,
  surplusTitle: (transactionId: string) => `Refund what was paid twice: ${transactionId}`,
  previewTitle: 'Check the refund',
  payment: {
    card: 'Payment',
    id: 'Payment',
    order: 'Order',
    noOrder: 'Not known',
    paidBy: 'Paid by',
    paid: 'Paid',
    refunded: 'Refunded',
    left: 'Left to refund',
    story: 'Story of the transaction',
  },
  surplus: {
    card: 'How it was counted',
    counted: (orderId: string | null) =>
      orderId === null ? 'Payments that count' : `Payments that count for order ${orderId}`,
    transaction: 'Transaction',
    payment: 'Payment',
    amount: 'Paid',
    left: 'Left of it',
    more: (payments: number) => `${payments} more payments count, which are not listed here.`,
    success: 'Kept: one success of the order',
    surplus: 'Paid beyond it',
    refunds: 'This refund is of payment',
    rest: (amount: string) =>
      `One refund is of one payment. Another ${amount} is left then: request it in a second refund.`,
  },
  refunds: {
    card: 'Refunds so far',
    caption: 'Refunds so far, newest first',
    amount: 'Amount',
    status: 'Status',
    requestedBy: 'Requested by',
    requestedAt: 'Requested',
    story: 'Story',
    open: 'Open',
  },
  form: {
    card: 'Refund',
    howMuch: 'How much',
    all: (left: string) => `All that is left: ${left}`,
    part: 'A part',
    amount: 'Amount of the part',
    amountHint: 'Digits, with a point before decimals: 150000 or 10000.50',
    receiver: 'Who receives it',
    receiverHint: 'The payment was made by QR code, so the gateway needs a bank account.',
    accountName: 'Name of the account holder',
    accountNameHint: 'As the bank knows it',
    accountNumber: 'Account number',
    swiftCode: 'SWIFT/BIC code of the bank',
    reason: 'Reason',
    chooseReason: 'Choose a reason',
    otherReason: 'Another reason, described below',
    reasonText: 'Remark',
    reasonTextHint: 'Shown with the refund, not sent to the customer. Required for another reason.',
    preview: 'Preview',
    cancel: 'Cancel',
    nothingIsSent: 'Nothing is sent yet: the next page shows what would be.',
  },
  preview: {
    card: 'What will be sent',
    sentence: (amount: string, to: string) => `${amount} is sent ${to}.`,
    backToPayer: 'back to where the payment came from',
    toAccount: (name: string, number: string, bank: string) =>
      `to ${name}, account ${number} at ${bank}`,
    amount: 'Amount',
    payment: 'Of payment',
    to: 'To',
    toPayer: 'Back to where the payment came from',
    receiver: (name: string, number: string, bank: string) => `${name}, ${number}, ${bank}`,
    after: 'Left to refund after it',
    reason: 'Reason',
    approval: 'Second person',
    needsApproval: 'Has to approve it. Nothing is sent before, and you cannot approve it yourself.',
    needsNoApproval: 'Not needed. It is sent as soon as you confirm.',
    confirm: 'Confirm refund',
    change: 'Change',
    checkAgain: 'Check the refund once more: what you confirmed is not what was shown.',
    amountIgnored: (amount: string) =>
      `You also wrote an amount, ${amount}. It is not used, because you chose all that is left.`,
    hints: {
      accountNumber: 'The account number is unusual: check it with the customer.',
      swiftCode: 'The SWIFT/BIC code is unusual: most have 8 or 11 letters and digits.',
    },
  },
  problems: {
    amountKind: 'Choose all that is left, or a part.',
    amount: 'Write an amount above zero, without spaces or commas: 150000 or 10000.50.',
    decimals: (currency: string) => `${currency} does not have so many decimals.`,
    tooMuch: (left: string) => `Only ${left} is left to refund. Write that, or less.`,
    cap: (leftToday: string | undefined) =>
      leftToday === undefined
        ? 'This is more than you may refund at once. Ask a colleague with a higher limit.'
        : `This is more than you may refund. ${leftToday} is left to you today. Ask a colleague with a higher limit.`,
    required: {
      accountName: 'Enter the name of the account holder.',
      accountNumber: 'Enter the account number.',
      swiftCode: 'Enter the code of the bank.',
    },
    receiver: 'Use at most 140 characters, and only ones that can be printed.',
    strict: {
      accountName: 'Use at most 140 characters, and only ones that can be printed.',
      accountNumber: 'Use 4 to 34 letters and digits, without spaces.',
      swiftCode: 'Use the 8 or 11 letters and digits of a SWIFT/BIC code, in capitals.',
    },
    reason: 'Choose a reason from the list.',
    reasonText: 'Describe the reason.',
    reasonLong: 'Use at most 400 characters, and only ones that can be printed.',
  },
  alerts: {
    corrections: 'Nothing was refunded yet. Correct what is marked below.',
    expired: 'This form can no longer be used. Nothing was refunded. Check this new one and go on.',
    stale: 'Nothing was refunded: something changed after you opened the form. Check it again.',
    leftChanged: (before: string, now: string) =>
      `When you opened the form, ${before} was left to refund. Now it is ${now}.`,
    newRefund: (refund: { amount: string; by: string; at: string; status: string }) =>
      `A refund of ${refund.amount} was requested by ${refund.by} at ${refund.at}. It is now: ${refund.status}.`,
    otherChange: 'The figures are the same. Another detail of the payment or its refunds changed.',
    nothingLeft: 'Nothing is left to refund.',
    notRefundable: {
      missing:
        'This payment cannot be refunded: the gateway no longer lists it. Ask the gateway now, and pass it on to an operator if that does not help.',
      unreadable:
        'This payment cannot be refunded: the gateway lists it with values that cannot be read. Pass it on to an operator.',
      status: (status: string) =>
        `This payment cannot be refunded. Its status is: ${status}. Only a payment that succeeded can be.`,
    },
    noSuccess: 'No payment of this transaction succeeded, so there is nothing to refund.',
    noSurplus:
      'Nothing was paid twice here: one success of the order is left, and nothing beyond it in this transaction.',
    noMoreSurplus: (left: string) =>
      `Only ${left} of what was paid twice can be refunded at once. Choose that, or less.`,
    held: (reason: string) =>
      `Refunds of this payment are held: ${reason}. Ask an operator to release the hold, then try again.`,
    accountHeld: (reason: string) =>
      `Refunds of this account are held: ${reason}. Ask an operator to release the hold, then try again.`,
    heldNow: 'Refunds are held at the moment. Ask an operator to release the hold, then try again.',
    disabled:
      'New refunds are switched off at the moment. Nothing was refunded. Try again later, or ask the people who run the service.',
    accountMissing:
      'This account is no longer set up, so the gateway cannot be called. Ask the people who run the service.',
    notNow: 'This payment cannot be refunded at the moment. Open its story to see why.',
    tooManyOpen:
      'Too many refunds of this payment have not ended. Nothing was refunded. Wait until one of them has.',
    keyReused:
      'This form was already used for another refund. Nothing more was refunded. Look at that refund before you go on.',
    openRefund: 'Open that refund',
  },
} as const

export const refundFormNotices = {
  refundRequested: 'Refund requested. It is shown below and changes as the gateway answers.',
  refundAwaiting:
    'Refund requested. It waits for a second person to approve it; nothing is sent before.',
  refundRepeated:
    'This refund was already requested, at the time shown below. Nothing was refunded a second time.',
} as const
