import { ALWAYS } from './always.ts'
import { AT_REST } from './at-rest.ts'
import { OF_FEED } from './feed.ts'
import type { Ledgers } from './ledgers.ts'
import { OF_PORTAL } from './portal.ts'
import type { Damage, Rule } from './rules.ts'
import { STEP_BY_STEP } from './steps.ts'

export type Finding = { damage: Damage; rule: string; what: string }

/** The rules that ledgers are judged by: where the gateway and people may have been wrong, only a witness can judge. */
export function rulesFor({ witnessed, phase }: Ledgers): readonly Rule[] {
  if (witnessed) return [...ALWAYS, ...STEP_BY_STEP]
  return phase === 'rest' ? [...ALWAYS, ...AT_REST, ...OF_PORTAL, ...OF_FEED] : ALWAYS
}

/** Compares what was acknowledged, stored, shown, moved and fed, by these records alone. */
export function audit(ledgers: Ledgers, rules = rulesFor(ledgers)): Finding[] {
  return rules.flatMap(({ damage, rule, find }) =>
    find(ledgers).map((what) => ({ damage, rule, what })),
  )
}

/** Counts what was acknowledged and is gone since the database was set back: no defect, but never hidden. */
export function countLost({ acknowledged, stored }: Ledgers) {
  const notified = new Set(stored.notifications.map(({ sha256 }) => sha256))
  const kept = new Set(stored.refunds.map(({ id }) => id))
  const gone = (ids: readonly string[], held: ReadonlySet<string>) =>
    new Set(ids.filter((id) => !held.has(id))).size
  const risked = acknowledged.notifications.flatMap((one) => (one.isAtRisk ? one.sha256 : []))
  const refunds = acknowledged.refunds.flatMap((one) => (one.isAtRisk ? one.refundId : []))
  return { notifications: gone(risked, notified), refunds: gone(refunds, kept) }
}
