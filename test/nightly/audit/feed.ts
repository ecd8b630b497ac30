import {
  describe,
  type FedEvent,
  isFinal,
  isNews,
  isOfEndpoint,
  isOfExternal,
  isOfPayment,
  isOfRefund,
  isOfTransaction,
  nameSubject,
  type PaymentEvent,
  type RefundEvent,
} from './events.ts'
import { isEnded } from './evidence.ts'
import { findRepeated, isSamePayment, isSameRefund, type Stored, unique, units } from './ledgers.ts'
import { ofFeed, type Rule } from './rules.ts'

/** What readers are told: events that are missing, untrue, or in an order that is impossible. */
export const OF_FEED: readonly Rule[] = [
  ofFeed(
    'lost',
    'every new payment, refund, portal refund and discrepancy has an event',
    (fed, { stored }) => {
      const told = new Set(fed.read.filter(isNews).map(nameSubject))
      return listStored(stored).filter((name) => !told.has(name))
    },
  ),
  ofFeed('doubled', 'a payment, a refund and a discrepancy are announced as new once', (fed) =>
    findRepeated(fed.read.filter(isNews).map(nameSubject)),
  ),
  ofFeed('lost', 'the object of every event is stored', (fed, { stored }) => {
    const kept = new Set([
      ...listStored(stored),
      ...stored.transactions.map(({ id }) => `transaction ${id}`),
    ])
    return fed.read
      .filter((event) => !isOfEndpoint(event) && !kept.has(nameSubject(event)))
      .map(describe)
  }),
  ofFeed('lost', 'the last event of a payment matches the stored payment', (fed, { stored }) => {
    const last = new Map(fed.read.filter(isOfPayment).map((event) => [event.data.id, event]))
    return stored.payments.flatMap((payment) => {
      const event = last.get(payment.id)
      return event && !isSamePayment(event.data, payment) ? [describe(event)] : []
    })
  }),
  ofFeed('lost', 'the last event of a refund matches the stored refund', (fed, { stored }) => {
    const last = new Map(fed.read.filter(isOfRefund).map((event) => [event.data.id, event]))
    return stored.refunds.flatMap(({ id, paymentId, amount, status }) => {
      const event = last.get(id)
      if (!event) return []
      const { data } = event
      const isSame =
        data.status === status &&
        data.paymentId === paymentId &&
        units(data.amount) === units(amount)
      return isSame ? [] : [`${describe(event)}, stored ${status}`]
    })
  }),
  ofFeed('lost', 'the last event of a portal refund matches the stored one', (fed, { stored }) => {
    const last = new Map(fed.read.map((event) => [nameSubject(event), event]))
    return stored.external.flatMap(({ id, state, ...refund }) => {
      const event = last.get(`external_refund ${id}`)
      if (!event || !isOfExternal(event)) return []
      const isSame = event.data.state === state && isSameRefund(refund, event.data)
      return isSame ? [] : [`${describe(event)}, stored ${state}`]
    })
  }),
  ofFeed(
    'lost',
    'a final transaction has a final event after its last refund request',
    (fed, { stored }) => {
      const last = new Map<string, string>()
      for (const { type, transactionId } of fed.read) {
        if (type === 'transaction.final' || type === 'refund.created') last.set(transactionId, type)
      }
      return stored.transactions
        .filter(({ id, isFinal }) => isFinal && last.get(id) !== 'transaction.final')
        .map(({ id }) => id)
    },
  ),
  ofFeed(
    'lost',
    'a final event has the stored state, unless a payment event follows it',
    (fed, { stored }) => {
      const last = new Map<string, FedEvent>()
      for (const event of fed.read) {
        if (isOfPayment(event) || isFinal(event)) last.set(event.transactionId, event)
      }
      return stored.transactions.flatMap(({ id, isFinal: isOver, state, refundedAmount }) => {
        const event = last.get(id)
        if (!isOver || !event || !isFinal(event)) return []
        const { data } = event
        const isSame =
          data.final && data.state === state && units(data.refundedAmount) === units(refundedAmount)
        return isSame ? [] : [`${describe(event)}, stored ${state}`]
      })
    },
  ),
  ofFeed('lost', 'an abandoned transaction has an event', (fed, { stored }) => {
    const told = new Set(
      fed.read.flatMap((event) => (event.type === 'sync.abandoned' ? event.transactionId : [])),
    )
    return stored.transactions
      .filter(({ id, isAbandoned }) => isAbandoned && !told.has(id))
      .map(({ id }) => id)
  }),
  ofFeed(
    'lost',
    'a reader that followed the feed through the storm got all of it in order',
    ({ read, followed }) =>
      unique([...read, ...(followed ?? [])].map(({ merchantCode }) => merchantCode)).flatMap(
        (account) => {
          const isOwn = ({ merchantCode }: FedEvent) => merchantCode === account
          return followed ? compare(read.filter(isOwn), followed.filter(isOwn)) : []
        },
      ),
  ),
  ofFeed('lost', 'a webhook receiver got every event unchanged', ({ read, taken }) => {
    if (!taken) return []
    // Those about an endpoint go to the other endpoints of its owner, and each owner has one here.
    const wanted = read.filter((event) => !isOfEndpoint(event))
    const known = new Map(read.map((event) => [event.id, JSON.stringify(event)]))
    const ids = new Set(taken.map(({ id }) => id))
    return [
      ...wanted.filter(({ id }) => !ids.has(id)),
      ...taken.filter((event) => known.get(event.id) !== JSON.stringify(event)),
    ].map(describe)
  }),
  ofFeed('disordered', 'positions in the feed increase', (fed) =>
    fed.read.flatMap((event, index) => {
      const before = fed.read[index - 1]
      return before && BigInt(before.id) >= BigInt(event.id) ? [describe(event)] : []
    }),
  ),
  ofFeed(
    'disordered',
    'no event of a payment or a refund precedes the event that announces it',
    (fed) => {
      const known = new Set<string>()
      return fed.read.flatMap((event) => {
        if (isNews(event) || isOfEndpoint(event)) known.add(nameSubject(event))
        const needs =
          isOfRefund(event) || isOfExternal(event) ? [`payment ${event.data.paymentId}`] : []
        const isAhead = [nameSubject(event), ...needs].some(
          (name) => !name.startsWith('transaction') && !known.has(name),
        )
        return isAhead ? [describe(event)] : []
      })
    },
  ),
  ofFeed('disordered', 'events of a payment are in the order of their answers', (fed) => {
    const last = new Map<string, string>()
    return fed.read.filter(isOfPayment).flatMap((event) => {
      const { id, asOf } = event.data
      const before = last.get(id) ?? asOf
      last.set(id, asOf)
      return before > asOf ? [`${describe(event)}, after one of ${before}`] : []
    })
  }),
  ofFeed(
    'disordered',
    'an event of a transaction shows its payments as their last events do',
    (fed) => {
      const last = new Map<string, PaymentEvent['data']>()
      return fed.read.flatMap((event) => {
        if (isOfPayment(event)) last.set(event.data.id, event.data)
        if (!isOfTransaction(event)) return []
        const isKnown = (payment: PaymentEvent['data']) =>
          isSamePayment(payment, last.get(payment.id))
        return event.data.payments.every(isKnown) ? [] : [describe(event)]
      })
    },
  ),
  ofFeed('disordered', 'an ended refund does not change without a cause', (fed) => {
    const caused = new Set(fed.read.flatMap(listCaused))
    const grown = new Set(fed.read.flatMap(listGrown))
    const last = new Map<string, RefundEvent['data']>()
    return fed.read.filter(isOfRefund).flatMap((event) => {
      const { data } = event
      const before = last.get(data.id)
      last.set(data.id, data)
      if (!before || !hasEnd(before) || before.status === data.status) return []
      // Allowed after a decision or evidence; a success inferred from growth may come into doubt, and so may a
      // failure when growth or a portal refund appears that it was judged without.
      const isDoubted = before.status === 'failed' && data.status === 'needs_review'
      const isInDoubt = before.inferred || (isDoubted && grown.has(data.paymentId))
      const isCaused = !isEnded(before.status) || caused.has(data.id) || isInDoubt
      return hasEnd(data) && isCaused ? [] : [`${describe(event)}, after ${before.status}`]
    })
  }),
  ofFeed(
    'disordered',
    'a receiver gets the events of one transaction in order, although some twice',
    ({ taken = [] }) => {
      const seen = new Set<string>()
      const last = new Map<string, bigint>()
      return taken.flatMap((event) => {
        if (seen.has(event.id)) return []
        seen.add(event.id)
        const before = last.get(event.transactionId) ?? 0n
        last.set(event.transactionId, BigInt(event.id))
        return before > BigInt(event.id) ? [`${describe(event)}, after ${before}`] : []
      })
    },
  ),
]

/** Describes every place at which a reader got something else than the feed holds. */
function compare(read: readonly FedEvent[], followed: readonly FedEvent[]): string[] {
  return Array.from({ length: Math.max(read.length, followed.length) }).flatMap((_, index) => {
    const [stands, told] = [read[index], followed[index]]
    if (JSON.stringify(stands) === JSON.stringify(told)) return []
    return [
      `${stands ? describe(stands) : 'nothing'}, reader got ${told ? describe(told) : 'nothing'}`,
    ]
  })
}

function listStored({ payments, refunds, external, discrepancies }: Stored): string[] {
  return [
    ...payments.map(({ id }) => `payment ${id}`),
    ...refunds.map(({ id }) => `refund ${id}`),
    ...external.map(({ id }) => `external_refund ${id}`),
    ...discrepancies.map(({ id }) => `discrepancy ${id}`),
  ]
}

/** Discrepancies that record one end after another. */
const CAUSES = ['success_after_failure', 'failure_after_success']

function listCaused(event: FedEvent): string[] {
  if (event.type !== 'discrepancy.found' || !CAUSES.includes(event.data.kind)) return []
  return event.data.refundId === null ? [] : [event.data.refundId]
}

/** Lists the payment that grew by what no refund explains, or by a refund made at the portal. */
function listGrown(event: FedEvent): string[] {
  if (isOfExternal(event)) return [event.data.paymentId]
  if (event.type !== 'discrepancy.found' || event.data.kind !== 'unexplained_growth') return []
  return event.data.paymentId === null ? [] : [event.data.paymentId]
}

function hasEnd({ status }: RefundEvent['data']): boolean {
  return isEnded(status) || status === 'needs_review'
}
