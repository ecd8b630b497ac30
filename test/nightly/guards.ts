import { ADDRESSES } from './guards/addresses.ts'
import { AMOUNTS } from './guards/amounts.ts'
import { ANSWERS } from './guards/answers.ts'
import { APPROVALS } from './guards/approvals.ts'
import { ATTEMPTS } from './guards/attempts.ts'
import { AUDIT } from './guards/audit.ts'
import { CAPS_AND_HOLDS } from './guards/caps-and-holds.ts'
import { CARDS } from './guards/cards.ts'
import { CLAIMS } from './guards/claims.ts'
import { COMMAND_LINE } from './guards/command-line.ts'
import { CONFIGURATION } from './guards/configuration.ts'
import { CONSOLE } from './guards/console.ts'
import { CONSOLE_PAGES } from './guards/console-pages.ts'
import { CONSTRAINTS } from './guards/constraints.ts'
import { DATABASE } from './guards/database.ts'
import { DEADLINES } from './guards/deadlines.ts'
import { DECISIONS } from './guards/decisions.ts'
import { ENCRYPTION } from './guards/encryption.ts'
import { EVENT_ORDER } from './guards/event-order.ts'
import { EVIDENCE } from './guards/evidence.ts'
import { EXPORTS } from './guards/exports.ts'
import { EXTERNAL_REFUNDS } from './guards/external-refunds.ts'
import { FEED } from './guards/feed.ts'
import { GATEWAY } from './guards/gateway.ts'
import type { Guard } from './guards/guard.ts'
import { IDEMPOTENCY } from './guards/idempotency.ts'
import { INTAKE } from './guards/intake.ts'
import { ISOLATION } from './guards/isolation.ts'
import { KEYS } from './guards/keys.ts'
import { LOST_ROWS } from './guards/lost-rows.ts'
import { MATCHING } from './guards/matching.ts'
import { MOVED_PAYMENTS } from './guards/moved-payments.ts'
import { NOTIFICATIONS } from './guards/notifications.ts'
import { ODD_READINGS } from './guards/odd-readings.ts'
import { PEOPLE } from './guards/people.ts'
import { READINGS } from './guards/readings.ts'
import { REFUND_NOTIFICATIONS } from './guards/refund-notifications.ts'
import { REFUNDABLE } from './guards/refundable.ts'
import { RESTORES } from './guards/restores.ts'
import { RETURNS } from './guards/returns.ts'
import { SECOND_PRINCIPALS } from './guards/second-principals.ts'
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
  ...APPROVALS,
  ...ATTEMPTS,
  ...AUDIT,
  ...CAPS_AND_HOLDS,
  ...CARDS,
  ...CLAIMS,
  ...COMMAND_LINE,
  ...CONFIGURATION,
  ...CONSOLE,
  ...CONSOLE_PAGES,
  ...CONSTRAINTS,
  ...DATABASE,
  ...DEADLINES,
  ...DECISIONS,
  ...ENCRYPTION,
  ...EVENT_ORDER,
  ...EVIDENCE,
  ...EXPORTS,
  ...EXTERNAL_REFUNDS,
  ...FEED,
  ...GATEWAY,
  ...IDEMPOTENCY,
  ...INTAKE,
  ...ISOLATION,
  ...KEYS,
  ...LOST_ROWS,
  ...MATCHING,
  ...MOVED_PAYMENTS,
  ...NOTIFICATIONS,
  ...ODD_READINGS,
  ...PEOPLE,
  ...READINGS,
  ...REFUND_NOTIFICATIONS,
  ...REFUNDABLE,
  ...RESTORES,
  ...RETURNS,
  ...SECOND_PRINCIPALS,
  ...SERVICE,
  ...SESSIONS,
  ...SETTINGS,
  ...SIGNATURES,
  ...SURPLUS,
  ...TRANSACTIONS,
  ...WEBHOOKS,
]

/** How many rows there are at least. It falls only with a feature that is removed. */
export const LEAST_GUARDS = 496
