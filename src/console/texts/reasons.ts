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
