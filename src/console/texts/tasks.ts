/** Texts of the page of what waits for a person. */
export const taskTexts = {
  title: 'Waiting for you',
  nothingToDo: {
    title: 'Nothing to decide',
    body: 'Your roles let you look things up. Approvals and decisions wait for people with the roles for them.',
  },
  allDone: 'Nothing waits for you at the moment.',
  count: (count: number, more: boolean) => (more ? `${count}+` : String(count)),
  more: (count: number, more: boolean) => (more ? `More than ${count} others` : `${count} more`),
  next: 'Next page',
  back: 'Everything that waits for you',
  sections: {
    approvals: {
      title: 'Refunds to approve',
      lead: 'Nothing of them is sent before another person approves.',
      empty: 'No refund waits for an approval.',
    },
    reviews: {
      title: 'Refunds that need a decision',
      lead: 'The evidence contradicts itself, or none arrived. Their amounts stay reserved.',
      empty: 'No refund needs a decision.',
    },
    overdue: {
      title: 'Refunds without an outcome',
      lead: (age: string) => `Sent more than ${age} ago, and neither confirmed nor refused since.`,
      empty: 'Every refund that was sent has an outcome, or was sent a short time ago.',
    },
    discrepancies: {
      title: 'Discrepancies',
      lead: 'Two sources disagree. The most severe come first, then the oldest.',
      empty: 'All sources agree.',
    },
    endpoints: {
      title: 'Webhooks that do not arrive',
      lead: 'Other systems do not receive events at these addresses.',
      empty: 'Every webhook endpoint accepts its events.',
    },
  },
  columns: {
    refund: 'Refund',
    order: 'Order',
    transaction: 'Transaction',
    askedBy: 'Asked by',
    reason: 'Reason',
    since: 'Waiting since',
    status: 'Status',
    sent: 'Sent',
    assignee: 'Taken care of by',
    note: 'What you can do',
    severity: 'Severity',
    kind: 'What disagrees',
    endpoint: 'Address',
    failing: 'Failing since',
    answer: 'Last answer',
    nextAttempt: 'Next attempt',
    event: 'Newest failed event',
    actions: 'Actions',
  },
  age: (age: string) => `for ${age}`,
  forPerson: (person: string) => `for ${person}`,
  unassigned: 'Not assigned',
  noReason: 'None given',
  noOrder: 'Not named',
  own: 'You asked for this refund: another person has to approve it.',
  waitsForAnother: 'An approver has to decide.',
  canDecide: 'Open it to approve or decline.',
  held: 'Held: it is not sent before the hold is released.',
  decidable: 'You can decide it now.',
  decidableIn: (duration: string) => `You can decide it in ${duration}.`,
  review: {
    contradicted: 'The evidence contradicts itself.',
    no_evidence: 'No evidence arrived.',
    rule_missing: 'The service has no rule for what happened.',
  },
  severities: { high: 'Money', medium: 'Order', low: 'Records' },
  endpoint: {
    disabled: {
      gone: 'Disabled: the address answered that it is gone (410).',
      failing: 'Disabled: nothing was accepted for five days.',
      key_ended: 'Disabled: its API key, or the person whose it is, has no access any more.',
    },
    status: (status: number) => `Status ${status}`,
    noAnswer: 'No answer',
    pending: (count: number) =>
      count >= 100
        ? '100 events or more wait.'
        : count === 1
          ? '1 event waits.'
          : `${count} events wait.`,
    atOnce: 'At once',
    never: 'None: disabled',
    enable: 'Enable again',
    openStory: 'Open the transaction',
  },
} as const

export const taskNotices = {
  endpointEnabled: 'The endpoint is enabled again. What waited for it is sent now.',
} as const
