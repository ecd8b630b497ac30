import { DOUBLED } from './doubled.ts'
import type { Ledgers } from './ledgers.ts'
import { LOST } from './lost.ts'
import { DISORDERED } from './order.ts'
import { PORTAL } from './portal.ts'
import type { Damage, Rule } from './rules.ts'
import { STUCK } from './stuck.ts'
import { TOLD } from './told.ts'

export type Problem = { damage: Damage; rule: string; what: string }

/** All rules of the auditor. */
export const RULES: readonly Rule[] = [
  ...LOST,
  ...TOLD,
  ...PORTAL,
  ...DISORDERED,
  ...DOUBLED,
  ...STUCK,
]

/** Checks the ledgers by every rule. */
export function audit(ledgers: Ledgers, rules: readonly Rule[] = RULES): Problem[] {
  return rules.flatMap(({ damage, rule, find }) =>
    find(ledgers).map((what) => ({ damage, rule, what })),
  )
}
