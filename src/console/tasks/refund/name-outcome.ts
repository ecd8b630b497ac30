import { TEXTS } from '../../texts/en.ts'

/** Names a decided outcome in words. */
export function nameOutcome(outcome: string): string {
  const known = Object.entries(TEXTS.decisions.outcomes).find(([name]) => name === outcome)
  return known?.[1] ?? TEXTS.states.unknown(outcome)
}
