import { addAmounts, compareAmounts } from '../../../../src/money.ts'
import { sumUnknown, weighEvidence } from './evidence.ts'
import { isSamePayment, isSameRefund, type PaymentFacts } from './ledgers.ts'
import { nameRefundOf } from './names.ts'
import { type Rule, unique } from './rules.ts'

/** What was acknowledged or moved, but is missing from the ledgers or differs there. */
export const LOST: readonly Rule[] = [
  {
    damage: 'lost',
    rule: 'an acknowledged notification is stored',
    find: ({ sent, stored }) => {
      const kept = new Set(stored.notifications.map(({ sha256 }) => sha256))
      return sent.notifications
        .filter(({ sha256, isAtRisk }) => !isAtRisk && !kept.has(sha256))
        .map(({ sha256, transactionId }) => `${transactionId ?? 'of a refund'}, bytes ${sha256}`)
    },
  },
  {
    damage: 'lost',
    rule: 'an acknowledged transaction is stored',
    find: ({ sent, stored }) => {
      const kept = new Set(stored.transactions.map(({ id }) => id))
      const promised = [...sent.notifications, ...sent.synced].flatMap(
        ({ transactionId, isAtRisk }) => (isAtRisk ? [] : (transactionId ?? [])),
      )
      return unique(promised).filter((id) => !kept.has(id))
    },
  },
  {
    damage: 'lost',
    rule: 'the payments of a stored transaction match the gateway, but for portal refunds never notified',
    find: (ledgers) => {
      const { stored, moved } = ledgers
      const evidence = weighEvidence(ledgers)
      const known = new Set(stored.transactions.map(({ id }) => id))
      const kept = new Map(stored.payments.map((payment) => [payment.id, payment]))
      const theirs = new Set(moved.payments.map(({ id }) => id))
      const isKept = (payment: PaymentFacts) => {
        const found = kept.get(payment.id)
        if (found === undefined) return false
        const { refundedAmount } = found
        const most = addAmounts([refundedAmount, sumUnknown(ledgers, evidence, payment.id)])
        const mayBe = compareAmounts(payment.refundedAmount, most) <= 0
        const isMore = compareAmounts(refundedAmount, payment.refundedAmount) > 0
        return isSamePayment({ ...payment, refundedAmount }, found) && mayBe && !isMore
      }
      return [
        ...moved.payments
          .filter((payment) => known.has(payment.transactionId) && !isKept(payment))
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
      // One that was lost when the database was set back was requested again, until that was refused.
      const refused = new Set(sent.refused.map(({ key }) => key))
      return sent.refunds
        .filter((one) => {
          const found = kept.get(one.refundId)
          const isGone = one.isAtRisk && refused.has(one.key)
          return !isGone && !(found?.key === one.key && isSameRefund(one, found))
        })
        .map(({ key, refundId }) => `${key}, ${refundId}`)
    },
  },
  {
    damage: 'lost',
    rule: 'every movement of money has a stored refund, or was made at the portal',
    find: (ledgers) => {
      const { sent, stored, moved } = ledgers
      const { shaken } = weighEvidence(ledgers)
      const kept = new Map(stored.refunds.map((refund) => [refund.id, refund]))
      const made = new Map(sent.portal.map((one) => [one.requestId, one]))
      // Its row was lost when the database was set back, and nothing was left to request it again.
      const lost = new Map(
        sent.asked
          .filter(({ paymentId }) => shaken.has(paymentId))
          .map((one) => [nameRefundOf(one.key), one]),
      )
      return moved.movements
        .filter((one) => {
          const id = one.requestId
          return !isSameRefund(one, kept.get(id) ?? made.get(id) ?? lost.get(id))
        })
        .map(({ requestId, paymentId, amount }) => `${requestId}: ${amount} of ${paymentId}`)
    },
  },
  {
    damage: 'lost',
    rule: 'a failed refund did not move money',
    find: ({ stored, moved }) => {
      const happened = new Set(
        moved.movements.flatMap(({ requestId, isAtRisk }) => (isAtRisk ? [] : requestId)),
      )
      return stored.refunds
        .filter(({ id, status }) => status === 'failed' && happened.has(id))
        .map(({ id }) => id)
    },
  },
  {
    damage: 'lost',
    rule: 'a succeeded refund moved money, unless only growth suggests it',
    find: (ledgers) => {
      const { moved, silent, shaken } = weighEvidence(ledgers)
      // Growth of as much that was never notified cannot be told from its own.
      const mayErr = (paymentId: string) => silent.has(paymentId) || shaken.has(paymentId)
      return ledgers.stored.refunds
        .filter(({ id, status }) => status === 'succeeded' && !moved.has(id))
        .filter(({ paymentId, inferred }) => !inferred || !mayErr(paymentId))
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
