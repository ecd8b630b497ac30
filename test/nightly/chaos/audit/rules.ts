import type { Ledgers } from './ledgers.ts'

/** What must never happen. */
export type Damage = 'lost' | 'doubled' | 'disordered' | 'stuck' | 'leaked'

/** A rule the auditor checks. `find` describes each violation. */
export type Rule = { damage: Damage; rule: string; find: (ledgers: Ledgers) => string[] }

/** A defect planted in the ledgers, and the rule that must detect it. */
export type Lie = [rule: string, what: string, tell: (ledgers: Ledgers) => void]

/** Removes duplicates. */
export function unique(items: readonly string[]): string[] {
  return [...new Set(items)]
}

/** Returns the items that occur more than once. */
export function findRepeated(items: readonly string[]): string[] {
  const seen = new Set<string>()
  return unique(items.filter((item) => seen.has(item) || !seen.add(item)))
}
