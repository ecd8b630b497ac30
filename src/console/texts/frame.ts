/** Texts of the frame around every page. */
export const frameTexts = {
  product: 'IPN processor',
  titleOf: (page: string) => `${page} – IPN processor`,
  skip: 'Skip to the content',
  navigation: 'Pages',
  person: 'You',
  pages: {
    search: 'Search',
    tasks: 'Waiting for you',
    transactions: 'Transactions',
    payments: 'Payments',
    refunds: 'Refunds',
    discrepancies: 'Discrepancies',
    reasons: 'Refund reasons',
    people: 'People',
    account: 'Your account',
  },
  signOut: 'Sign out',
  keys: {
    title: 'Keyboard',
    list: [
      ['/', 'Go to the search'],
      ['?', 'Show these keys'],
      ['Esc', 'Close this list'],
    ],
    use: 'Use the keys / and ?',
    close: 'Close',
    copy: 'Copy',
    copied: 'Copied',
  },
  restored: 'What you typed is filled in again. Nothing was sent: check it, then send it.',
} as const

/** Messages shown once after a form was sent; the URL names one by its key. */
export const frameNotices = {
  saved: 'Saved.',
} as const
