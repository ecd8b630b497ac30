import { compareAmounts } from '../../../../src/money.ts'
import {
  describe,
  isFinal,
  isNews,
  isOfExternal,
  isOfPayment,
  isOfRefund,
  nameSubject,
  type ToldEvent,
} from './events.ts'
import { isSamePayment, isSameRefund, type Ledgers } from './ledgers.ts'
import { findRepeated, type Rule, unique } from './rules.ts'

/** Events that are missing, or that differ from what is stored. */
export const TOLD: readonly Rule[] = [
  {
    damage: 'lost',
    rule: 'every new payment, refund, portal refund and discrepancy has an event',
    find: ({ stored, feed }) => {
      const told = new Set(feed.read.filter(isNews).map(nameSubject))
      return listStored(stored).filter((name) => !told.has(name))
    },
  },
  {
    damage: 'doubled',
    rule: 'a payment, a refund and a discrepancy are announced as new once',
    find: ({ feed }) => findRepeated(feed.read.filter(isNews).map(nameSubject)),
  },
  {
    damage: 'lost',
    rule: 'the object of every event is stored',
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
    rule: 'the last event of a payment matches the stored payment',
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
    rule: 'the last event of a refund matches the stored refund',
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
    rule: 'the last event of a portal refund matches the stored one',
    find: ({ stored, feed }) => {
      const last = new Map(feed.read.map((event) => [nameSubject(event), event]))
      return stored.external.flatMap(({ id, state, ...refund }) => {
        const event = last.get(`external_refund ${id}`)
        if (!event || !isOfExternal(event)) return []
        const isSame = event.data.state === state && isSameRefund(refund, event.data)
        return isSame ? [] : [`${describe(event)}, stored ${state}`]
      })
    },
  },
  {
    damage: 'lost',
    rule: 'a final transaction has a final event after its last refund request',
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
    rule: 'a final event has the stored state, unless a payment event follows it',
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
    rule: 'an abandoned transaction has an event',
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
    rule: 'a reader that followed the feed through the storm got all of it in order',
    find: ({ feed: { read, followed } }) =>
      unique([...read, ...followed].map(({ merchantCode }) => merchantCode)).flatMap((account) => {
        const isOwn = ({ merchantCode }: ToldEvent) => merchantCode === account
        return compare(read.filter(isOwn), followed.filter(isOwn))
      }),
  },
  {
    damage: 'lost',
    rule: 'a webhook receiver got every event unchanged',
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

/** Describes every place at which a reader got something else than the feed holds. */
function compare(read: readonly ToldEvent[], followed: readonly ToldEvent[]): string[] {
  return Array.from({ length: Math.max(read.length, followed.length) }).flatMap((_, index) => {
    const [stands, told] = [read[index], followed[index]]
    if (JSON.stringify(stands) === JSON.stringify(told)) return []
    return [
      `${stands ? describe(stands) : 'nothing'}, reader got ${told ? describe(told) : 'nothing'}`,
    ]
  })
}

function listStored({ payments, refunds, external, discrepancies }: Ledgers['stored']): string[] {
  return [
    ...payments.map(({ id }) => `payment ${id}`),
    ...refunds.map(({ id }) => `refund ${id}`),
    ...external.map(({ id }) => `external_refund ${id}`),
    ...discrepancies.map(({ id }) => `discrepancy ${id}`),
  ]
}
