import { addAmounts, compareAmounts } from '../../../../src/money.ts'
import { sumOf, sumUnknown, weighEvidence } from './evidence.ts'
import { nameRefundOf } from './names.ts'
import { findRepeated, type Rule, unique } from './rules.ts'

/** What exists, or moves, more than once. */
export const DOUBLED: readonly Rule[] = [
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
    rule: 'the id of a refund follows from its account and its key',
    find: ({ sent, stored }) => {
      const pairs = [
        ...sent.refunds.map(({ key, refundId }): [string, string] => [key, refundId]),
        ...stored.refunds.map(({ key, id }): [string, string] => [key, id]),
      ]
      return unique(pairs.flatMap(([key, id]) => (nameRefundOf(key) === id ? [] : `${key}, ${id}`)))
    },
  },
  {
    damage: 'doubled',
    rule: 'no more of a payment moves than was requested',
    find: ({ sent, moved }) =>
      unique(moved.movements.map(({ paymentId }) => paymentId)).filter(
        (id) => compareAmounts(sumOf(id, moved.movements), sumOf(id, sent.asked, sent.portal)) > 0,
      ),
  },
  {
    damage: 'doubled',
    rule: 'no more of a payment moves than was paid',
    find: ({ moved }) =>
      moved.payments
        .filter(({ id, amount }) => compareAmounts(sumOf(id, moved.movements), amount) > 0)
        .map(({ id }) => id),
  },
  {
    damage: 'doubled',
    rule: 'what is known to have moved cannot be refunded again',
    find: (ledgers) => {
      const { moved, shown } = ledgers
      const evidence = weighEvidence(ledgers)
      return shown.transactions
        .flatMap(({ payments }) => payments)
        .filter(({ id, amount, refundableAmount }) => {
          const taken = addAmounts([sumOf(id, moved.movements), refundableAmount])
          const most = addAmounts([amount, sumUnknown(ledgers, evidence, id)])
          return compareAmounts(taken, most) > 0
        })
        .map(({ id, refundableAmount }) => `${id}, ${refundableAmount}`)
    },
  },
  {
    damage: 'doubled',
    rule: 'notifications, transactions, payments and refunds exist once',
    find: ({ stored, shown }) => [
      ...findRepeated(stored.notifications.map(({ sha256 }) => sha256)),
      ...findRepeated(stored.transactions.map(({ id }) => id)),
      ...findRepeated(stored.payments.map(({ id }) => id)),
      ...findRepeated(stored.external.map(({ requestId }) => requestId)),
      ...findRepeated(shown.transactions.flatMap(({ payments }) => payments.map(({ id }) => id))),
      ...findRepeated(shown.refunds.map(({ id }) => id)),
    ],
  },
]
