import { ADDRESSES } from './guards/addresses.ts'
import { AMOUNTS } from './guards/amounts.ts'
import { ANSWERS } from './guards/answers.ts'
import { ATTEMPTS } from './guards/attempts.ts'
import { AUDIT } from './guards/audit.ts'
import { CARDS } from './guards/cards.ts'
import { CLAIMS } from './guards/claims.ts'
import { CONFIGURATION } from './guards/configuration.ts'
import { CONSOLE } from './guards/console.ts'
import { CONSTRAINTS } from './guards/constraints.ts'
import { DATABASE } from './guards/database.ts'
import { DECISIONS } from './guards/decisions.ts'
import { ENCRYPTION } from './guards/encryption.ts'
import { EVIDENCE } from './guards/evidence.ts'
import { EXPORTS } from './guards/exports.ts'
import { FEED } from './guards/feed.ts'
import { GATEWAY } from './guards/gateway.ts'
import type { Guard } from './guards/guard.ts'
import { INTAKE } from './guards/intake.ts'
import { ISOLATION } from './guards/isolation.ts'
import { KEYS } from './guards/keys.ts'
import { NOTIFICATIONS } from './guards/notifications.ts'
import { PEOPLE } from './guards/people.ts'
import { SERVICE } from './guards/service.ts'
import { SESSIONS } from './guards/sessions.ts'
import { SETTINGS } from './guards/settings.ts'
import { SIGNATURES } from './guards/signatures.ts'
import { SURPLUS } from './guards/surplus.ts'
import { TRANSACTIONS } from './guards/transactions.ts'
import { WEBHOOKS } from './guards/webhooks.ts'

/** Every guard and the test that notices its absence. Played by `npm run test:nightly -- guards`. */
export const GUARDS: readonly Guard[] = [
  ...ADDRESSES,
  ...AMOUNTS,
  ...ANSWERS,
  ...ATTEMPTS,
  ...AUDIT,
  ...CARDS,
  ...CLAIMS,
  ...CONFIGURATION,
  ...CONSOLE,
  ...CONSTRAINTS,
  ...DATABASE,
  ...DECISIONS,
  ...ENCRYPTION,
  ...EVIDENCE,
  ...EXPORTS,
  ...FEED,
  ...GATEWAY,
  ...INTAKE,
  ...ISOLATION,
  ...KEYS,
  ...NOTIFICATIONS,
  ...PEOPLE,
  ...SERVICE,
  ...SESSIONS,
  ...SETTINGS,
  ...SIGNATURES,
  ...SURPLUS,
  ...TRANSACTIONS,
  ...WEBHOOKS,
]

/** How many rows there are at least. It falls only with a feature that is removed. */
export const LEAST_GUARDS = 274
