import { ATTEMPTS } from './guards/attempts.ts'
import { DECISIONS } from './guards/decisions.ts'
import { EVIDENCE } from './guards/evidence.ts'
import type { Guard } from './guards/guard.ts'

/** Every guard and the test that notices its absence. Played by `npm run test:nightly -- guards`. */
export const GUARDS: readonly Guard[] = [...EVIDENCE, ...ATTEMPTS, ...DECISIONS]

/** How many rows there are at least. It falls only with a feature that is removed. */
export const LEAST_GUARDS = 13
