import type { Role } from '../../access/roles.ts'
import { IDLE_MINUTES, SESSION_MINUTES } from '../../access/sessions.ts'

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
