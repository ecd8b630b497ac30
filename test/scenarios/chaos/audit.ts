import { addAmounts, compareAmounts } from '../../../src/money.ts'
import type { Ledgers } from './ledgers.ts'
import { LOST } from './lost.ts'
import { DISORDERED } from './order.ts'
import { type Damage, findRepeated, type Rule, unique } from './rules.ts'
import { TOLD } from './told.ts'
import { isEnded, listUndecidable } from './undecidable.ts'

export type Problem = { damage: Damage; rule: string; what: string }

const DOUBLED_AND_STUCK: readonly Rule[] = [
  {
    damage: 'doubled',
    rule: 'a refund moves money once',
    find: ({ moved }) => findRepeated(moved.movements.map(({ requestId }) => requestId)),
  },
  {
    damage: 'doubled',
    rule: 'one idempotency key has one refund',
    find: ({ sent, stored }) => {
      const pairs = [
        ...sent.refunds.map(({ key, refundId }) => `${key} ${refundId}`),
        ...stored.refunds.map(({ key, id }) => `${key} ${id}`),
      ]
      return findRepeated(unique(pairs).map((pair) => pair.split(' ')[0] ?? ''))
    },
  },
  {
    damage: 'doubled',
    rule: 'no more of a payment moves than was requested',
    find: ({ stored, moved }) =>
      unique(moved.movements.map(({ paymentId }) => paymentId)).filter((paymentId) => {
        const sum = (all: readonly { paymentId: string; amount: string }[]) =>
          addAmounts(all.filter((one) => one.paymentId === paymentId).map(({ amount }) => amount))
        return compareAmounts(sum(moved.movements), sum(stored.refunds)) > 0
      }),
  },
  {
    damage: 'doubled',
    rule: 'notifications, transactions, payments and refunds exist once',
    find: ({ stored, shown }) => [
      ...findRepeated(stored.notifications.map(({ sha256 }) => sha256)),
      ...findRepeated(stored.transactions.map(({ id }) => id)),
      ...findRepeated(stored.payments.map(({ id }) => id)),
      ...findRepeated(shown.transactions.flatMap(({ payments }) => payments.map(({ id }) => id))),
      ...findRepeated(shown.refunds.map(({ id }) => id)),
    ],
  },
  {
    damage: 'stuck',
    rule: 'nothing is leased, overdue, abandoned or open',
    find: (ledgers) => {
      const waiting = new Set(listUndecidable(ledgers).map(({ transactionId }) => transactionId))
      return ledgers.stored.transactions
        .filter(
          ({ id, isFinal, isLeased, isOverdue, isAbandoned }) =>
            isAbandoned || (!waiting.has(id) && (!isFinal || isLeased || isOverdue)),
        )
        .map(({ id }) => id)
    },
  },
  {
    damage: 'stuck',
    rule: 'every refund has ended, unless its outcome is undecidable',
    find: (ledgers) => {
      const undecidable = new Set(listUndecidable(ledgers).map(({ id }) => id))
      return ledgers.stored.refunds
        .filter(({ id, status }) => !isEnded(status) && !undecidable.has(id))
        .map(({ id, status }) => `${id} is ${status}`)
    },
  },
  {
    damage: 'stuck',
    rule: 'every refund notification was applied',
    find: ({ stored }) =>
      stored.notifications.filter(({ isWaiting }) => isWaiting).map(({ sha256 }) => sha256),
  },
]

/** All rules of the auditor. */
export const RULES: readonly Rule[] = [...LOST, ...TOLD, ...DISORDERED, ...DOUBLED_AND_STUCK]

/** Checks the ledgers by every rule. */
export function audit(ledgers: Ledgers, rules: readonly Rule[] = RULES): Problem[] {
  return rules.flatMap(({ damage, rule, find }) =>
    find(ledgers).map((what) => ({ damage, rule, what })),
  )
}
