import { IDLE_MINUTES, RECENT_MINUTES, SESSION_MINUTES } from '../../access/sessions.ts'
import { LINK_MINUTES } from '../../access/sign-in.ts'
import type { Role } from '../../access/types.ts'
import { CLI } from '../../version.ts'
import { decisionNotices, decisionTexts } from './decisions.ts'
import { discrepancyHelp } from './discrepancy-help.ts'
import { discrepancyNotices, discrepancyPageTexts } from './discrepancy-page.ts'
import { listTexts } from './lists.ts'
import { refundFormNotices, refundFormTexts } from './refund-form.ts'
import { refundTexts } from './refunds.ts'
import { searchNotices, searchTexts } from './search.ts'
import { stateTexts } from './states.ts'
import { storyNotices, storyTexts } from './story.ts'
import { taskNotices, taskTexts } from './tasks.ts'
import { timelineTexts } from './timeline.ts'

/** Texts of a person's own page, and of sessions wherever they are listed. */
export const accountTexts = {
  title: 'Your account',
  you: 'You',
  facts: { name: 'Name', email: 'E-mail', roles: 'Roles', merchants: 'Merchant accounts' },
  everyMerchant: 'every account',
  roles: {
    viewer: 'viewer: sees payments and refunds',
    agent: 'agent: asks for refunds',
    approver: 'approver: approves refunds that others asked for',
    operator: 'operator: decides about refunds, holds and discrepancies',
    admin: 'admin: does all of this, and manages people',
  } satisfies Record<Role, string>,
  sessions: {
    title: 'Your sessions',
    caption: 'Open sessions',
    explain: `A session ends ${IDLE_MINUTES} minutes after its last use, and ${SESSION_MINUTES / 60} hours after the sign-in. End one that you do not know, and inform an admin.`,
    columns: {
      browser: 'Browser',
      address: 'Address',
      signedIn: 'Signed in',
      lastUsed: 'Last used',
      ends: 'Ends at the latest',
    },
    thisBrowser: 'this browser',
    end: 'End session',
    none: 'No session is open.',
  },
} as const

/** Messages after a redirect. */
export const accountNotices = { sessionEnded: 'The session is ended.' } as const

/** What each kind of discrepancy means, in words. */
export const discrepancyTexts = {
  kinds: {
    unexplained_growth: 'More was refunded than any known refund explains',
    refunded_amount_fell: 'The refunded amount went down',
    success_after_failure: 'A refund that failed here was notified as successful',
    failure_after_success: 'A refund that succeeded here was notified as failed',
    notification_mismatch: 'A notification names another payment or amount than the refund',
    refund_without_end: 'The gateway accepted a refund, and nothing followed',
    external_refund_unmatched: 'A refund made elsewhere does not show in the refunded amount',
    external_refund_contradicted: 'A refund made elsewhere was notified as succeeded and as failed',
    refund_rule_missing: 'The service has no rule for what happened to a refund',
    decided_against_evidence: 'A person decided against the evidence',
    answer_went_backwards: 'The gateway took back what it had reported',
    payment_unreadable: 'The gateway lists a payment with values that cannot be read',
    amount_rounded: 'An amount had more decimals than it can have',
    order_conflict: 'Notifications name different orders',
    amount_mismatch: 'Another amount was paid than the order states',
    currency_changed: 'The currency changed',
    payment_elsewhere: 'A payment is listed under two transactions',
    payment_moved: 'A payment moved to another transaction',
    payment_missing: 'The gateway no longer lists a payment',
    order_paid_twice: 'The order was paid by another transaction as well',
    duplicate_payment: 'More than one payment of the transaction succeeded',
    ipn_contradicts_query: 'A notification contradicts what the gateway answers',
    account_missing: 'The merchant account is no longer in the settings',
    ipn_missing: 'The payment was found by asking; its notification never came',
  },
  side: (source: string, words: string) => (words === '' ? source : `${source}: ${words}`),
  sources: {
    service: 'Our records',
    query: 'The gateway when asked',
    earlier_query: 'The gateway earlier',
    notification: 'A notification',
    settings: 'The settings',
    person: 'A person',
  },
} as const

const count = (n: number, unit: string) => `${n} ${unit}${n === 1 ? '' : 's'}`

/** Lengths of time in words. */
export const durationTexts = {
  days: (n: number) => count(n, 'day'),
  hours: (n: number) => count(n, 'hour'),
  minutes: (n: number) => count(n, 'minute'),
  moment: 'less than a minute',
} as const

/** Texts of the pages that explain why there is nothing else to see. */
export const errorTexts = {
  forbidden: {
    title: 'You may not do this',
    body: 'Your roles do not include this. Ask an admin of this service if you need it.',
  },
  notFound: {
    title: 'Nothing here',
    body: 'There is no such page or object, or it belongs to an account that you may not see.',
  },
  foreignForm: {
    title: 'This request was refused',
    body: 'It did not come from a page of your session, so nothing was done. Open the page again and repeat what you did there.',
  },
  refused: { title: 'This was refused' },
  limited: { title: 'Too many requests' },
  wrongMethod: {
    title: 'This page cannot be used like that',
    body: 'Nothing was done. Open the page from the search, and use its buttons.',
  },
  interrupted: {
    title: 'The service cannot reach its database',
    body: 'Whether what you sent was done is not known. You return to the form in a few seconds, with what you typed: look at its page first, and send it again only if it was not done.',
  },
  unavailable: {
    title: 'The service cannot reach its database',
    body: 'Nothing was changed. This page tries again by itself every few seconds.',
  },
  failed: {
    title: 'Something went wrong',
    body: (requestId: string) =>
      `Nothing else is known here. Pass this on to the people who run the service: request ${requestId}.`,
  },
  back: 'Back to the search',
} as const

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

/** Texts of the pages on which admins manage people. */
export const peopleTexts = {
  title: 'People',
  caption: 'People who may use this console',
  columns: {
    name: 'Name',
    email: 'E-mail',
    roles: 'Roles',
    merchants: 'Accounts',
    sessions: 'Open sessions',
    lastUsed: 'Last seen',
  },
  ended: 'ended',
  never: 'not signed in',
  add: {
    title: 'Add a person',
    name: 'Name',
    nameHint: 'As it stands in records of who did what. No two people have the same.',
    email: 'E-mail',
    emailHint: 'Can be left out.',
    roles: 'Roles',
    merchants: 'Merchant accounts',
    button: 'Add the person',
    problems: {
      name: 'Write a name of 1 to 140 characters, other than demo.',
      nameTaken: 'Another person has this name. Add what distinguishes the two.',
      email: 'Write a whole e-mail address, or nothing.',
      emailTaken: 'Another person has this e-mail address.',
      roles: 'Choose at least one role.',
      merchants: 'Choose at least one account.',
    },
  },
  link: {
    title: 'Sign-in link',
    explain: `A link opens one session for this person, in the browser in which it is opened. It works once, within ${LINK_MINUTES} minutes. Give it to no one else: whoever opens it acts under this name, and that you made it is recorded.`,
    button: 'Make a sign-in link',
    made: (name: string) => `A sign-in link for ${name}`,
    until: 'Valid until',
    once: 'It is shown only now.',
    back: 'Back to the person',
  },
  access: 'Access',
  sessions: 'Open sessions',
  end: {
    title: 'End the access',
    explain:
      'All sessions and links of the person end at once, and nothing more can be done under this name. What they did stays in the records.',
    button: 'End the access',
  },
} as const

/** Messages after a redirect. */
export const peopleNotices = {
  personAdded: 'The person is added. Make a sign-in link, and pass it on.',
  personEnded: 'The access is ended.',
} as const

/** Texts of the page on which admins keep the reasons for refunds. */
export const reasonTexts = {
  title: 'Refund reasons',
  account: 'Account',
  show: 'Show',
  list: (merchantCode: string) => `Reasons of ${merchantCode}`,
  intro:
    'People choose one of these when they refund a payment. A refund keeps the text it was requested with.',
  defaults: 'This account has no list of its own. Until you add a reason, these are offered:',
  columns: { reason: 'Reason', actions: 'Actions' },
  label: (label: string) => `New text of “${label}”`,
  rename: 'Rename',
  renameOf: (label: string) => `Rename “${label}”`,
  raise: 'Move up',
  raiseOf: (label: string) => `Move up “${label}”`,
  end: 'Remove',
  endOf: (label: string) => `Remove “${label}”`,
  add: 'Add a reason',
  newLabel: 'New reason',
  newLabelHint: 'One line of at most 80 characters',
  addButton: 'Add',
  problems: {
    label: 'Write one line of 1 to 80 characters.',
    exists: 'This reason is in the list already.',
    full: (most: number) => `An account has at most ${most} reasons. Remove one first.`,
    gone: 'This reason was changed or removed meanwhile. The list below is the present one.',
  },
} as const

export const reasonNotices = {
  reasonAdded: 'Reason added.',
  reasonRenamed: 'Reason renamed.',
  reasonRaised: 'Reason moved up.',
  reasonEnded: 'Reason removed. Refunds that have it keep it.',
} as const

/** Texts of the way in. */
export const signInTexts = {
  invitation: 'Sign in',
  how: 'How to get a sign-in link',
  steps: [
    'Ask an admin of this service for a sign-in link. Admins make one on the page People.',
    `Open the link in this browser within ${LINK_MINUTES} minutes. It works once.`,
    `An operator of the server can make one, too: ${CLI} people link NAME`,
  ],
  returning:
    'After you have signed in you return to the page you came from. What you typed there is kept in this browser for an hour; nothing has been sent.',
  open: 'Open your session',
  explain: 'This link opens a session in this browser',
  button: 'Sign in',
  refused: 'This link does not work',
  why: 'It was used before, it has expired, or it is not complete. Nothing else has happened.',
  limited:
    'Too many sign-ins were tried from your network, or with your name. Wait a minute, then open the link again.',
  again: {
    title: 'Sign in again to go on',
    why: `For this you must have signed in within the last ${RECENT_MINUTES} minutes. Nothing was sent or changed.`,
    kept: 'Open a new sign-in link in this browser within an hour. You return to this page with what you typed, and send it yourself.',
  },
  ended: 'Your session has ended.',
} as const

/** Messages after a redirect. */
export const signInNotices = {
  signedOut: 'You are signed out.',
} as const

/** Every text that the console shows, in English. A text with values in it is a function. */
export const TEXTS = {
  frame: frameTexts,
  errors: errorTexts,
  account: accountTexts,
  people: peopleTexts,
  signIn: signInTexts,
  states: stateTexts,
  discrepancies: discrepancyTexts,
  refunds: refundTexts,
  lists: listTexts,
  search: searchTexts,
  story: storyTexts,
  timeline: timelineTexts,
  refundForm: refundFormTexts,
  reasons: reasonTexts,
  discrepancyHelp,
  discrepancyPage: discrepancyPageTexts,
  decisions: decisionTexts,
  durations: durationTexts,
  tasks: taskTexts,
} as const

/** Messages after a redirect, by the code that stands in the URL. */
export const NOTICES = {
  ...frameNotices,
  ...accountNotices,
  ...peopleNotices,
  ...searchNotices,
  ...signInNotices,
  ...storyNotices,
  ...refundFormNotices,
  ...reasonNotices,
  ...taskNotices,
  ...decisionNotices,
  ...discrepancyNotices,
} as const

export type NoticeCode = keyof typeof NOTICES
