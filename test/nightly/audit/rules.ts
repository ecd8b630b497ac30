import type { Fed, Ledgers, Shown, ShownPayment, StoredRefund, Witnessed } from './ledgers.ts'

/** What must never happen. */
export type Damage = 'lost' | 'doubled' | 'disordered' | 'stuck' | 'leaked'

/** A rule the auditor checks. `find` names or describes each violation. */
export type Rule = { damage: Damage; rule: string; find(ledgers: Ledgers): string[] }

export const rule = (damage: Damage, rule: string, find: Rule['find']): Rule => ({
  damage,
  rule,
  find,
})

/** Makes rules over a part of the ledgers, for tests that have it. */
const over =
  <P>(read: (ledgers: Ledgers) => P | undefined) =>
  (damage: Damage, name: string, find: (part: P, ledgers: Ledgers) => string[]): Rule =>
    rule(damage, name, (ledgers) => {
      const part = read(ledgers)
      return part === undefined ? [] : find(part, ledgers)
    })

/** Over what the API shows, over the feed, and over what only a test knows that plays step by step. */
export const ofShown = over<Shown>(({ shown }) => shown)
export const ofFeed = over<Fed>(({ fed }) => fed)
export const ofSteps = over<Witnessed>(({ witnessed }) => witnessed)

/** Rules that name the stored refunds with which something is wrong. */
export const ofRefunds = (
  damage: Damage,
  name: string,
  isWrong: (one: StoredRefund, ledgers: Ledgers) => boolean,
): Rule =>
  rule(damage, name, (ledgers) =>
    ledgers.stored.refunds.filter((one) => isWrong(one, ledgers)).map(({ id }) => id),
  )
export const ofRefundsInSteps = (
  damage: Damage,
  name: string,
  isWrong: (one: StoredRefund, witnessed: Witnessed, ledgers: Ledgers) => boolean,
): Rule =>
  ofRefunds(damage, name, (one, ledgers) =>
    ledgers.witnessed ? isWrong(one, ledgers.witnessed, ledgers) : false,
  )

/** A rule that names the payments of which the API shows something wrong. */
export const ofShownPayments = (
  damage: Damage,
  name: string,
  isWrong: (one: ShownPayment, ledgers: Ledgers) => boolean,
): Rule =>
  ofShown(damage, name, ({ transactions }, ledgers) =>
    transactions
      .flatMap(({ payments }) => payments)
      .filter((one) => isWrong(one, ledgers))
      .map(({ id }) => id),
  )
