import { addAmounts, compareAmounts } from '../../../../src/money.ts'
import { sumOf, weighEvidence } from './evidence.ts'
import type { Rule } from './rules.ts'
import { isEnded, listUndecidable, listWaiting } from './undecidable.ts'

/** What never comes to an end. */
export const STUCK: readonly Rule[] = [
  {
    damage: 'stuck',
    rule: 'nothing is leased, overdue, abandoned or open',
    find: (ledgers) => {
      const waiting = listWaiting(ledgers)
      return ledgers.stored.transactions
        .filter(
          ({ id, isFinal, isLeased, isOverdue, isAbandoned }) =>
            isAbandoned || isOverdue || (!waiting.has(id) && (!isFinal || isLeased)),
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
    rule: 'every refund notification of a known payment was applied',
    find: ({ stored }) => {
      const known = new Set(stored.payments.map(({ id }) => id))
      return stored.notifications
        .filter(({ waitsFor }) => waitsFor !== null && known.has(waitsFor))
        .map(({ sha256 }) => sha256)
    },
  },
  {
    damage: 'stuck',
    rule: 'no refund that fits is refused',
    find: (ledgers) => {
      const { sent, stored, moved } = ledgers
      const { shaken } = weighEvidence(ledgers)
      const paid = new Map(moved.payments.map((payment) => [payment.id, payment]))
      return sent.refused
        .filter(({ key, paymentId, amount }) => {
          const payment = paid.get(paymentId)
          if (payment?.status !== 'SUCCESS' || shaken.has(paymentId)) return false
          const others = sent.asked.filter((one) => one.key !== key)
          // Counted twice where the notification follows the payment: only a person can tell that it is old.
          const before = sent.portal.filter(({ isBefore }) => isBefore)
          // An inferred refund is in the refunded amount, and stays reserved until it is known.
          const inferred = stored.refunds.filter((one) => one.inferred)
          const taken = sumOf(paymentId, others, inferred, sent.portal, before)
          return compareAmounts(addAmounts([taken, amount]), payment.amount) <= 0
        })
        .map(({ key, code, amount }) => `${key}, ${amount}: ${code}`)
    },
  },
]
