import { LINK_MINUTES } from '../../access/sign-in.ts'

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
