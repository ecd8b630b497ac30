import { compareAmounts } from '../../../src/money.ts'
import { describe, isFinal, isNews, isOfPayment, isOfRefund, nameSubject } from './events.ts'
import type { ToldEvent } from './feed.ts'
import { isSamePayment, type Ledgers } from './ledgers.ts'
import { findRepeated, type Rule } from './rules.ts'

/** What the feed told that is not stored, did not tell, or told otherwise. */
export const TOLD: readonly Rule[] = [
  {
    damage: 'lost',
    rule: 'a payment, a refund and a discrepancy are told when they are new',
    find: ({ stored, feed }) => {
      const told = new Set(feed.read.filter(isNews).map(nameSubject))
      return listStored(stored).filter((name) => !told.has(name))
    },
  },
  {
    damage: 'doubled',
    rule: 'a payment, a refund and a discrepancy are told as new once',
    find: ({ feed }) => findRepeated(feed.read.filter(isNews).map(nameSubject)),
  },
  {
    damage: 'lost',
    rule: 'what was told is stored',
    find: ({ stored, feed }) => {
      const kept = new Set([
        ...listStored(stored),
        ...stored.transactions.map(({ id }) => `transaction ${id}`),
      ])
      return feed.read.filter((event) => !kept.has(nameSubject(event))).map(describe)
    },
  },
  {
    damage: 'lost',
    rule: 'the last event of a payment shows it as it is stored',
    find: ({ stored, feed }) => {
      const last = new Map(feed.read.filter(isOfPayment).map((event) => [event.data.id, event]))
      return stored.payments.flatMap((payment) => {
        const event = last.get(payment.id)
        return event && !isSamePayment(event.data, payment) ? [describe(event)] : []
      })
    },
  },
  {
    damage: 'lost',
    rule: 'the last event of a refund shows it as it is stored',
    find: ({ stored, feed }) => {
      const last = new Map(feed.read.filter(isOfRefund).map((event) => [event.data.id, event]))
      return stored.refunds.flatMap(({ id, paymentId, amount, status }) => {
        const event = last.get(id)
        if (!event) return []
        const { data } = event
        const isSame =
          data.status === status &&
          data.paymentId === paymentId &&
          compareAmounts(data.amount, amount) === 0
        return isSame ? [] : [`${describe(event)}, stored ${status}`]
      })
    },
  },
  {
    damage: 'lost',
    rule: 'a final transaction was told to be final since its last refund was asked for',
    find: ({ stored, feed }) => {
      const last = new Map<string, string>()
      for (const { type, transactionId } of feed.read) {
        if (type === 'transaction.final' || type === 'refund.created') last.set(transactionId, type)
      }
      return stored.transactions
        .filter(({ id, isFinal }) => isFinal && last.get(id) !== 'transaction.final')
        .map(({ id }) => id)
    },
  },
  {
    damage: 'lost',
    rule: 'a final transaction was told with its state, unless a payment was told after it',
    find: ({ stored, feed }) => {
      const last = new Map<string, ToldEvent>()
      for (const event of feed.read) {
        if (isOfPayment(event) || isFinal(event)) last.set(event.transactionId, event)
      }
      return stored.transactions.flatMap(({ id, isFinal: isOver, state, refundedAmount }) => {
        const event = last.get(id)
        if (!isOver || !event || !isFinal(event)) return []
        const { data } = event
        const isSame =
          data.final &&
          data.state === state &&
          compareAmounts(data.refundedAmount, refundedAmount) === 0
        return isSame ? [] : [`${describe(event)}, stored ${state}`]
      })
    },
  },
  {
    damage: 'lost',
    rule: 'what was given up was told to be',
    find: ({ stored, feed }) => {
      const told = new Set(
        feed.read.flatMap((event) => (event.type === 'sync.abandoned' ? event.transactionId : [])),
      )
      return stored.transactions
        .filter(({ id, isAbandoned }) => isAbandoned && !told.has(id))
        .map(({ id }) => id)
    },
  },
  {
    damage: 'lost',
    rule: 'who followed the feed through the storm was told what stands in it, in its order',
    find: ({ feed: { read, followed } }) =>
      Array.from({ length: Math.max(read.length, followed.length) }).flatMap((_, index) => {
        const [stands, told] = [read[index], followed[index]]
        if (JSON.stringify(stands) === JSON.stringify(told)) return []
        return [
          `${stands ? describe(stands) : 'nothing'}, told ${told ? describe(told) : 'nothing'}`,
        ]
      }),
  },
  {
    damage: 'lost',
    rule: 'a receiver of webhooks took everything that was told, as it was told',
    find: ({ feed: { read, taken } }) => {
      if (!taken) return []
      const known = new Map(read.map((event) => [event.id, JSON.stringify(event)]))
      const ids = new Set(taken.map(({ id }) => id))
      return [
        ...read.filter(({ id }) => !ids.has(id)),
        ...taken.filter((event) => known.get(event.id) !== JSON.stringify(event)),
      ].map(describe)
    },
  },
]

function listStored({ payments, refunds, discrepancies }: Ledgers['stored']): string[] {
  return [
    ...payments.map(({ id }) => `payment ${id}`),
    ...refunds.map(({ id }) => `refund ${id}`),
    ...discrepancies.map(({ id }) => `discrepancy ${id}`),
  ]
}
