import { compareAmounts } from '../../../src/money.ts'
import { isSamePayment, type PaymentFacts } from './ledgers.ts'
import { type Rule, unique } from './rules.ts'

/** What was acknowledged or moved, but is missing from the ledgers or differs there. */
export const LOST: readonly Rule[] = [
  {
    damage: 'lost',
    rule: 'an acknowledged notification is stored',
    find: ({ sent, stored }) => {
      const kept = new Set(stored.notifications.map(({ sha256 }) => sha256))
      return sent.notifications
        .filter(({ sha256 }) => !kept.has(sha256))
        .map(({ sha256, transactionId }) => `${transactionId ?? 'of a refund'}, bytes ${sha256}`)
    },
  },
  {
    damage: 'lost',
    rule: 'an acknowledged transaction is stored',
    find: ({ sent, stored }) => {
      const kept = new Set(stored.transactions.map(({ id }) => id))
      const promised = sent.notifications.flatMap(({ transactionId }) => transactionId ?? [])
      return unique([...promised, ...sent.synced]).filter((id) => !kept.has(id))
    },
  },
  {
    damage: 'lost',
    rule: 'the payments of a stored transaction match the gateway',
    find: ({ stored, moved }) => {
      const known = new Set(stored.transactions.map(({ id }) => id))
      const kept = new Map(stored.payments.map((payment) => [payment.id, payment]))
      const theirs = new Set(moved.payments.map(({ id }) => id))
      return [
        ...moved.payments
          .filter(
            (payment) =>
              known.has(payment.transactionId) && !isSamePayment(payment, kept.get(payment.id)),
          )
          .map((payment) => `${describe(payment)}, stored ${describe(kept.get(payment.id))}`),
        ...stored.payments.filter(({ id }) => !theirs.has(id)).map(describe),
      ]
    },
  },
  {
    damage: 'lost',
    rule: 'an acknowledged refund is stored as requested',
    find: ({ sent, stored }) => {
      const kept = new Map(stored.refunds.map((refund) => [refund.id, refund]))
      const isKept = ({ refundId, key, paymentId, amount }: (typeof sent.refunds)[number]) => {
        const found = kept.get(refundId)
        return (
          found?.key === key &&
          found.paymentId === paymentId &&
          compareAmounts(found.amount, amount) === 0
        )
      }
      return sent.refunds
        .filter((one) => !isKept(one))
        .map(({ key, refundId }) => `${key}, ${refundId}`)
    },
  },
  {
    damage: 'lost',
    rule: 'every movement of money has a stored refund of that payment and amount',
    find: ({ stored, moved }) => {
      const kept = new Map(stored.refunds.map((refund) => [refund.id, refund]))
      return moved.movements
        .filter(({ requestId, paymentId, amount }) => {
          const found = kept.get(requestId)
          return found?.paymentId !== paymentId || compareAmounts(found.amount, amount) !== 0
        })
        .map(({ requestId, paymentId, amount }) => `${requestId}: ${amount} of ${paymentId}`)
    },
  },
  {
    damage: 'lost',
    rule: 'a failed refund did not move money',
    find: ({ stored, moved }) => {
      const happened = new Set(moved.movements.map(({ requestId }) => requestId))
      return stored.refunds
        .filter(({ id, status }) => status === 'failed' && happened.has(id))
        .map(({ id }) => id)
    },
  },
  {
    damage: 'lost',
    rule: 'a succeeded refund moved money',
    find: ({ stored, moved }) => {
      const happened = new Set(moved.movements.map(({ requestId }) => requestId))
      return stored.refunds
        .filter(({ id, status }) => status === 'succeeded' && !happened.has(id))
        .map(({ id }) => id)
    },
  },
  {
    damage: 'lost',
    rule: 'the API shows the transactions and payments that are stored',
    find: ({ stored, shown }) => {
      const answered = new Map(shown.transactions.map(({ id, payments }) => [id, payments]))
      return [
        ...stored.transactions.filter(({ id }) => !answered.has(id)).map(({ id }) => id),
        ...stored.payments
          .filter((payment) => {
            const listed = answered.get(payment.transactionId) ?? []
            return !listed.some((one) => one.id === payment.id && isSamePayment(payment, one))
          })
          .map(describe),
      ]
    },
  },
  {
    damage: 'lost',
    rule: 'the API shows the refunds that are stored',
    find: ({ stored, shown }) => {
      const answered = new Map(shown.refunds.map((refund) => [refund.id, refund.status]))
      return stored.refunds
        .filter(({ id, status }) => answered.get(id) !== status)
        .map(({ id }) => id)
    },
  },
]

function describe(payment: PaymentFacts | undefined): string {
  if (!payment) return 'nothing'
  const { id, transactionId, status, amount, refundedAmount } = payment
  return `${id} of ${transactionId}: ${status} ${amount}, refunded ${refundedAmount}`
}
