import type { Ledgers } from './ledgers.ts'

/** What must not be, whatever happened. */
export type Damage = 'lost' | 'doubled' | 'disordered' | 'stuck'

/** Something the auditor looks for. `find` names each case. */
export type Rule = { damage: Damage; rule: string; find: (ledgers: Ledgers) => string[] }

/** What a service would have to do wrong; the rule named is the one that has to see it. */
export type Lie = [rule: string, what: string, tell: (ledgers: Ledgers) => void]

/** Each of them once. */
export function unique(items: readonly string[]): string[] {
  return [...new Set(items)]
}

/** Those that are there more than once. */
export function findRepeated(items: readonly string[]): string[] {
  const seen = new Set<string>()
  return unique(items.filter((item) => seen.has(item) || !seen.add(item)))
}
