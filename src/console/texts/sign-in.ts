import { RECENT_MINUTES } from '../../access/sessions.ts'
import { LINK_MINUTES } from '../../access/sign-in.ts'
import { CLI } from '../../version.ts'

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
