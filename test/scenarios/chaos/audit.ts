import { addAmounts, compareAmounts } from '../../../src/money.ts'
import type { Ledgers, PaymentFacts } from './ledgers.ts'

/** What must not be, whatever happened. */
export type Damage = 'lost' | 'doubled' | 'stuck'
export type Problem = { damage: Damage; rule: string; what: string }
type Rule = { damage: Damage; rule: string; find: (ledgers: Ledgers) => string[] }

/** Everything the auditor looks for. `find` names each case. */
export const RULES: readonly Rule[] = [
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
    rule: 'the payments of a stored transaction are as the gateway has them',
    find: ({ stored, moved }) => {
      const known = new Set(stored.transactions.map(({ id }) => id))
      const kept = new Map(stored.payments.map((payment) => [payment.id, payment]))
      const theirs = new Set(moved.payments.map(({ id }) => id))
      return [
        ...moved.payments
          .filter(
            (payment) => known.has(payment.transactionId) && !isSame(payment, kept.get(payment.id)),
          )
          .map((payment) => `${describe(payment)}, stored ${describe(kept.get(payment.id))}`),
        ...stored.payments.filter(({ id }) => !theirs.has(id)).map(describe),
      ]
    },
  },
  {
    damage: 'lost',
    rule: 'an acknowledged refund is stored as it was asked for',
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
    rule: 'money that moved has a stored refund of that payment and amount',
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
    rule: 'a refund that failed did not move',
    find: ({ stored, moved }) => {
      const happened = new Set(moved.movements.map(({ requestId }) => requestId))
      return stored.refunds
        .filter(({ id, status }) => status === 'failed' && happened.has(id))
        .map(({ id }) => id)
    },
  },
  {
    damage: 'lost',
    rule: 'a refund that succeeded moved',
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
            return !listed.some((one) => one.id === payment.id && isSame(payment, one))
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
  {
    damage: 'doubled',
    rule: 'a refund moves once',
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
    rule: 'no more of a payment moves than was asked for',
    find: ({ stored, moved }) =>
      unique(moved.movements.map(({ paymentId }) => paymentId)).filter((paymentId) => {
        const sum = (all: readonly { paymentId: string; amount: string }[]) =>
          addAmounts(all.filter((one) => one.paymentId === paymentId).map(({ amount }) => amount))
        return compareAmounts(sum(moved.movements), sum(stored.refunds)) > 0
      }),
  },
  {
    damage: 'doubled',
    rule: 'notifications, transactions, payments and refunds are there once',
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
    rule: 'every refund has ended, unless nobody can tell how',
    find: (ledgers) => {
      const undecidable = new Set(listUndecidable(ledgers).map(({ id }) => id))
      return ledgers.stored.refunds
        .filter(({ id, status }) => !isEnded(status) && !undecidable.has(id))
        .map(({ id, status }) => `${id} is ${status}`)
    },
  },
  {
    damage: 'stuck',
    rule: 'every notification of a refund was acted on',
    find: ({ stored }) =>
      stored.notifications.filter(({ isWaiting }) => isWaiting).map(({ sha256 }) => sha256),
  },
]

/** Compares the ledgers by every rule. */
export function audit(ledgers: Ledgers, rules: readonly Rule[] = RULES): Problem[] {
  return rules.flatMap(({ damage, rule, find }) =>
    find(ledgers).map((what) => ({ damage, rule, what })),
  )
}

/**
 * Refunds whose end nobody can tell from this side, so that a person has to, or they are asked about for
 * ever: no notification about them was ever taken in, and either they failed at the gateway after it had
 * taken them, or money of their payment moved just as silently while several of its refunds were open:
 * growth alone cannot say whose it was then.
 */
export function listUndecidable({ stored, moved }: Ledgers) {
  const told = new Set(moved.told)
  const failed = new Set(moved.failed)
  const silent = new Set(
    moved.movements
      .filter(({ requestId }) => !told.has(requestId))
      .map(({ paymentId }) => paymentId),
  )
  const transactions = new Map(stored.payments.map(({ id, transactionId }) => [id, transactionId]))
  const countOf = (paymentId: string) =>
    stored.refunds.filter((refund) => refund.paymentId === paymentId).length
  return stored.refunds
    .filter(({ id, status }) => !isEnded(status) && !told.has(id))
    .filter(
      ({ id, paymentId }) => failed.has(id) || (silent.has(paymentId) && countOf(paymentId) > 1),
    )
    .map(({ id, paymentId }) => ({ id, transactionId: transactions.get(paymentId) }))
}

/** A person's decision is no end of the service's. */
function isEnded(status: string): boolean {
  return status === 'succeeded' || status === 'failed'
}

function isSame(one: PaymentFacts, other: PaymentFacts | undefined): boolean {
  return (
    other !== undefined &&
    other.transactionId === one.transactionId &&
    other.status === one.status &&
    compareAmounts(other.amount, one.amount) === 0 &&
    compareAmounts(other.refundedAmount, one.refundedAmount) === 0
  )
}

function describe(payment: PaymentFacts | undefined): string {
  if (!payment) return 'nothing'
  const { id, transactionId, status, amount, refundedAmount } = payment
  return `${id} of ${transactionId}: ${status} ${amount}, refunded ${refundedAmount}`
}

function unique(items: readonly string[]): string[] {
  return [...new Set(items)]
}

function findRepeated(items: readonly string[]): string[] {
  const seen = new Set<string>()
  return unique(items.filter((item) => seen.has(item) || !seen.add(item)))
}
