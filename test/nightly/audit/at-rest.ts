import { isEnded, listUndecidable, listWaiting, sumUnknown, weighEvidence } from './evidence.ts'
import {
  findRepeated,
  isSamePayment,
  isSameRefund,
  nameRefundOf,
  type PaymentFacts,
  sumOf,
  unique,
  units,
} from './ledgers.ts'
import { ofRefunds, ofShown, type Rule, rule } from './rules.ts'

/** What holds when everything has come to rest, and neither the gateway nor people said what is not true. */
export const AT_REST: readonly Rule[] = [
  rule('lost', 'an acknowledged notification is stored', ({ acknowledged, stored }) => {
    const kept = new Set(stored.notifications.map(({ sha256 }) => sha256))
    return acknowledged.notifications
      .filter(({ sha256, isAtRisk }) => !isAtRisk && !kept.has(sha256))
      .map(({ sha256, transactionId }) => `${transactionId ?? 'of a refund'}, bytes ${sha256}`)
  }),
  rule('lost', 'an acknowledged transaction is stored', ({ acknowledged, stored }) => {
    const kept = new Set(stored.transactions.map(({ id }) => id))
    const promised = [...acknowledged.notifications, ...acknowledged.synced].flatMap(
      ({ transactionId, isAtRisk }) => (isAtRisk ? [] : (transactionId ?? [])),
    )
    return unique(promised).filter((id) => !kept.has(id))
  }),
  rule(
    'lost',
    'the payments of a stored transaction match the gateway, but for portal refunds never notified',
    (ledgers) => {
      const { stored, moved } = ledgers
      const evidence = weighEvidence(ledgers)
      const known = new Set(stored.transactions.map(({ id }) => id))
      const kept = new Map(stored.payments.map((payment) => [payment.id, payment]))
      const theirs = new Set(moved.payments.map(({ id }) => id))
      const isKept = (payment: PaymentFacts) => {
        const found = kept.get(payment.id)
        if (found === undefined) return false
        const { refundedAmount } = found
        const unseen = units(payment.refundedAmount) - units(refundedAmount)
        const mayBe = unseen >= 0n && unseen <= sumUnknown(ledgers, evidence, payment.id)
        return isSamePayment({ ...payment, refundedAmount }, found) && mayBe
      }
      return [
        ...moved.payments
          .filter((payment) => known.has(payment.transactionId) && !isKept(payment))
          .map((payment) => `${describe(payment)}, stored ${describe(kept.get(payment.id))}`),
        ...stored.payments.filter(({ id }) => !theirs.has(id)).map(describe),
      ]
    },
  ),
  rule('lost', 'an acknowledged refund is stored as requested', ({ acknowledged, stored }) => {
    const kept = new Map(stored.refunds.map((refund) => [refund.id, refund]))
    // One that was lost when the database was set back was requested again, until that was refused.
    const refused = new Set(acknowledged.refused.map(({ key }) => key))
    return acknowledged.refunds
      .filter((one) => {
        const found = kept.get(one.refundId)
        const isGone = one.isAtRisk && refused.has(one.key)
        return !isGone && !(found?.key === one.key && isSameRefund(one, found))
      })
      .map(({ key, refundId }) => `${key}, ${refundId}`)
  }),
  rule(
    'lost',
    'every movement of money has a stored refund, or was made at the portal',
    (ledgers) => {
      const { acknowledged, stored, moved } = ledgers
      const { shaken } = weighEvidence(ledgers)
      const kept = new Map(stored.refunds.map((refund) => [refund.id, refund]))
      const made = new Map(acknowledged.portal.map((one) => [one.requestId, one]))
      // Its row was lost when the database was set back, and nothing was left to request it again.
      const lost = new Map(
        acknowledged.asked
          .filter(({ paymentId }) => shaken.has(paymentId))
          .map((one) => [one.refundId, one]),
      )
      return moved.movements
        .filter((one) => {
          const id = one.requestId
          return !isSameRefund(one, kept.get(id) ?? made.get(id) ?? lost.get(id))
        })
        .map(({ requestId, paymentId, amount }) => `${requestId}: ${amount} of ${paymentId}`)
    },
  ),
  rule('lost', 'a succeeded refund moved money, unless only growth suggests it', (ledgers) => {
    const { moved, silent, shaken } = weighEvidence(ledgers)
    // Growth of as much that was never notified cannot be told from its own.
    const mayErr = (paymentId: string) => silent.has(paymentId) || shaken.has(paymentId)
    return ledgers.stored.refunds
      .filter(({ id, status }) => status === 'succeeded' && !moved.has(id))
      .filter(({ paymentId, inferred }) => !inferred || !mayErr(paymentId))
      .map(({ id }) => id)
  }),
  ofShown(
    'lost',
    'the API shows the transactions and payments that are stored',
    (shown, { stored }) => {
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
  ),
  ofShown('lost', 'the API shows the refunds that are stored', (shown, { stored }) => {
    const answered = new Map(shown.refunds.map((refund) => [refund.id, refund.status]))
    return stored.refunds
      .filter(({ id, status }) => answered.get(id) !== status)
      .map(({ id }) => id)
  }),
  ofShown('leaked', 'an account is shown only what is its own', (shown, { stored }) => {
    const own = new Set(
      [...stored.transactions, ...stored.payments, ...stored.refunds].map(({ id }) => id),
    )
    return [
      ...shown.transactions.flatMap(({ id, payments }) => [id, ...payments.map((one) => one.id)]),
      ...shown.refunds.map(({ id }) => id),
    ].filter((id) => !own.has(id))
  }),
  rule('doubled', 'one idempotency key has one refund', ({ acknowledged, stored }) => {
    const pairs = [
      ...acknowledged.refunds.map(({ key, refundId }) => `${key} ${refundId}`),
      ...stored.refunds.map(({ key, id }) => `${key} ${id}`),
    ]
    return findRepeated(unique(pairs).map((pair) => pair.split(' ')[0] ?? ''))
  }),
  rule(
    'doubled',
    'the id of a refund follows from its account and its key',
    ({ acknowledged, stored }) => {
      const pairs = [
        ...acknowledged.refunds.map(({ key, refundId }): [string, string] => [key, refundId]),
        ...stored.refunds.map(({ key, id }): [string, string] => [key, id]),
      ]
      return unique(pairs.flatMap(([key, id]) => (nameRefundOf(key) === id ? [] : `${key}, ${id}`)))
    },
  ),
  rule('doubled', 'no more of a payment moves than was requested', ({ acknowledged, moved }) =>
    unique(moved.movements.map(({ paymentId }) => paymentId)).filter(
      (id) => sumOf(id, moved.movements) > sumOf(id, acknowledged.asked, acknowledged.portal),
    ),
  ),
  ofShown('doubled', 'what is known to have moved cannot be refunded again', (shown, ledgers) => {
    const evidence = weighEvidence(ledgers)
    return shown.transactions
      .flatMap(({ payments }) => payments)
      .filter(({ id, amount, refundableAmount }) => {
        const taken = sumOf(id, ledgers.moved.movements) + units(refundableAmount)
        return taken > units(amount) + sumUnknown(ledgers, evidence, id)
      })
      .map(({ id, refundableAmount }) => `${id}, ${refundableAmount}`)
  }),
  rule('stuck', 'nothing is leased, overdue, abandoned or open', (ledgers) => {
    const waiting = listWaiting(ledgers)
    return ledgers.stored.transactions
      .filter(
        ({ id, isFinal, isLeased, isOverdue, isAbandoned }) =>
          isAbandoned || isOverdue || (!waiting.has(id) && (!isFinal || isLeased)),
      )
      .map(({ id }) => id)
  }),
  rule('stuck', 'every refund has ended, unless its outcome is undecidable', (ledgers) => {
    const undecidable = new Set(listUndecidable(ledgers).map(({ id }) => id))
    return ledgers.stored.refunds
      .filter(({ id, status }) => !isEnded(status) && !undecidable.has(id))
      .map(({ id, status }) => `${id} is ${status}`)
  }),
  rule('stuck', 'no attempt is in progress', ({ stored }) =>
    stored.attempts.flatMap(({ refundId, outcome }) => (outcome === null ? refundId : [])),
  ),
  rule('doubled', 'every stored refund was requested', ({ acknowledged, stored }) => {
    const asked = new Set(acknowledged.asked.map(({ key }) => key))
    return stored.refunds.flatMap(({ id, key }) => (asked.has(key) ? [] : id))
  }),
  ofRefunds(
    'lost',
    'no refund fails at a gateway that refuses none',
    ({ status }, { moved }) => status === 'failed' && !moved.refuses,
  ),
  rule('stuck', 'every refund notification of a known payment was applied', ({ stored }) => {
    const known = new Set(stored.payments.map(({ id }) => id))
    return stored.notifications
      .filter(({ waitsFor }) => waitsFor !== null && known.has(waitsFor))
      .map(({ sha256 }) => sha256)
  }),
  rule('stuck', 'no refund that fits is refused', (ledgers) => {
    const { acknowledged, stored, moved } = ledgers
    const { shaken } = weighEvidence(ledgers)
    const paid = new Map(moved.payments.map((payment) => [payment.id, payment]))
    return acknowledged.refused
      .filter(({ key, paymentId, amount }) => {
        const payment = paid.get(paymentId)
        if (payment?.status !== 'SUCCESS' || shaken.has(paymentId)) return false
        const others = acknowledged.asked.filter((one) => one.key !== key)
        // Counted twice where the notification follows the payment: only a person can tell that it is old.
        const before = acknowledged.portal.filter(({ isBefore }) => isBefore)
        // An inferred refund is in the refunded amount, and stays reserved until it is known.
        const inferred = stored.refunds.filter((one) => one.inferred)
        const taken = sumOf(paymentId, others, inferred, acknowledged.portal, before)
        return taken + units(amount) <= units(payment.amount)
      })
      .map(({ key, code, amount }) => `${key}, ${amount}: ${code}`)
  }),
]

function describe(payment: PaymentFacts | undefined): string {
  if (!payment) return 'nothing'
  const { id, transactionId, status, amount, refundedAmount } = payment
  return `${id} of ${transactionId}: ${status} ${amount}, refunded ${refundedAmount}`
}
