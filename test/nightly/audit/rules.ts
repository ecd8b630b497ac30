import type { Fed, Ledgers, Shown, Witnessed } from './ledgers.ts'

/** What must never happen. */
export type Damage = 'lost' | 'doubled' | 'disordered' | 'stuck' | 'leaked'

/** A rule the auditor checks. `find` names or describes each violation. */
export type Rule = { damage: Damage; rule: string; find(ledgers: Ledgers): string[] }

/** A rule over what the API shows, for tests that read it. */
export function ofShown(
  damage: Damage,
  rule: string,
  find: (shown: Shown, ledgers: Ledgers) => string[],
): Rule {
  return { damage, rule, find: (ledgers) => (ledgers.shown ? find(ledgers.shown, ledgers) : []) }
}

/** A rule over the feed. */
export function ofFeed(
  damage: Damage,
  rule: string,
  find: (fed: Fed, ledgers: Ledgers) => string[],
): Rule {
  return { damage, rule, find: (ledgers) => (ledgers.fed ? find(ledgers.fed, ledgers) : []) }
}

/** A rule over what only a test knows that plays step by step. */
export function ofSteps(
  damage: Damage,
  rule: string,
  find: (witnessed: Witnessed, ledgers: Ledgers) => string[],
): Rule {
  const judge = (ledgers: Ledgers) => (ledgers.witnessed ? find(ledgers.witnessed, ledgers) : [])
  return { damage, rule, find: judge }
}
