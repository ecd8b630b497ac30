/** Texts of the search. */
export const searchTexts = {
  title: 'Search',
  label: 'Id, order, reference or amount',
  hint: 'Any id of a transaction, payment or refund, an order id, a reference from a bank statement, or an amount. The first three characters of an id are enough.',
  filters: 'Narrow the results',
  state: 'State of the transaction',
  anyState: 'Any state',
  from: 'First day (UTC)',
  to: 'Last day (UTC)',
  account: 'Merchant account',
  anyAccount: 'All accounts',
  submit: 'Search',
  invalidQuery: 'Enter at most 128 characters, without line breaks.',
  invalidDay: 'Enter a day like 2026-11-22.',
  invalidState: 'Choose one of the states.',
  newest: 'Newest transactions',
  shortened:
    'Only the newest transactions were looked through. Choose days, or go on page by page in the list of transactions.',
  nothingYet: 'There are no transactions here yet.',
  found: (count: number) => (count === 1 ? '1 result' : `${count} results`),
  cut: (count: number) =>
    `Only the first ${count} results are shown. Enter more of the id to see fewer.`,
  ignored:
    'The filters were not used for what has exactly this id: it is shown although they do not fit.',
  filtered: 'Some results are not shown, because the filters leave them out.',
  groups: {
    transaction: 'Transactions',
    payment: 'Payments',
    refund: 'Refunds',
  },
  columns: {
    id: 'Id',
    matched: 'Found by',
    state: 'State',
    amount: 'Amount',
    order: 'Order',
    account: 'Account',
    time: 'Since',
  },
  matched: {
    transactionId: 'Transaction id',
    orderId: 'Order id',
    merchantTxnId: 'Your transaction id',
    paymentId: 'Payment id',
    refundId: 'Refund id',
    gatewayRefundId: "Gateway's refund id",
    gatewayReference: "Gateway's reference",
    amount: 'Amount',
  },
  none: {
    title: (query: string) => `Nothing found for “${query}”`,
    searched: (withRefunds: boolean) =>
      withRefunds
        ? 'These were searched: ids of transactions, payments and refunds, order ids, your own transaction ids, the gateway’s references of refunds, and amounts of payments and refunds.'
        : 'These were searched: ids of transactions and payments, order ids, your own transaction ids, and amounts of payments. Refunds were not: your roles do not include them.',
    filtered: 'Everything that was found is left out by the filters.',
    withoutFilters: 'Search without filters',
    advice: [
      'Compare the text with what the customer sent: a letter O and a zero look alike.',
      'Enter only the first characters of the id.',
      'Enter the whole amount of one payment or refund, for example 250000 or 250,000 VND.',
    ],
    ask: 'Ask the gateway',
    askWhy:
      'If this is the id of a transaction whose notification never came, the gateway may know it.',
    askNow: 'Ask the gateway about this id',
  },
} as const

/** Messages after a redirect. */
export const searchNotices = {
  filtersIgnored: 'The filters were not used: exactly this id was found.',
} as const
