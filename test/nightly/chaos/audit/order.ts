import {
  describe,
  isNews,
  isOfExternal,
  isOfPayment,
  isOfRefund,
  isOfTransaction,
  nameSubject,
  type PaymentEvent,
  type RefundEvent,
  type ToldEvent,
} from './events.ts'
import { isSamePayment } from './ledgers.ts'
import type { Rule } from './rules.ts'
import { isEnded } from './undecidable.ts'

/** Events in an order that is impossible. */
export const DISORDERED: readonly Rule[] = [
  {
    damage: 'disordered',
    rule: 'positions in the feed increase',
    find: ({ feed }) =>
      feed.read.flatMap((event, index) => {
        const before = feed.read[index - 1]
        return before && BigInt(before.id) >= BigInt(event.id) ? [describe(event)] : []
      }),
  },
  {
    damage: 'disordered',
    rule: 'no event of a payment or a refund precedes the event that announces it',
    find: ({ feed }) => {
      const known = new Set<string>()
      return feed.read.flatMap((event) => {
        if (isNews(event)) known.add(nameSubject(event))
        const needs =
          isOfRefund(event) || isOfExternal(event) ? [`payment ${event.data.paymentId}`] : []
        const isAhead = [nameSubject(event), ...needs].some(
          (name) => !name.startsWith('transaction') && !known.has(name),
        )
        return isAhead ? [describe(event)] : []
      })
    },
  },
  {
    damage: 'disordered',
    rule: 'events of a payment are in the order of their answers',
    find: ({ feed }) => {
      const last = new Map<string, string>()
      return feed.read.filter(isOfPayment).flatMap((event) => {
        const { id, asOf } = event.data
        const before = last.get(id) ?? asOf
        last.set(id, asOf)
        return before > asOf ? [`${describe(event)}, after one of ${before}`] : []
      })
    },
  },
  {
    damage: 'disordered',
    rule: 'an event of a transaction shows its payments as their last events do',
    find: ({ feed }) => {
      const last = new Map<string, PaymentEvent['data']>()
      return feed.read.flatMap((event) => {
        if (isOfPayment(event)) last.set(event.data.id, event.data)
        if (!isOfTransaction(event)) return []
        const isKnown = (payment: PaymentEvent['data']) =>
          isSamePayment(payment, last.get(payment.id))
        return event.data.payments.every(isKnown) ? [] : [describe(event)]
      })
    },
  },
  {
    damage: 'disordered',
    rule: 'an ended refund does not change without a cause',
    find: ({ feed }) => {
      const caused = new Set(feed.read.flatMap(listCaused))
      const grown = new Set(feed.read.flatMap(listGrown))
      const last = new Map<string, RefundEvent['data']>()
      return feed.read.filter(isOfRefund).flatMap((event) => {
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
    },
  },
  {
    damage: 'disordered',
    rule: 'a receiver gets the events of one transaction in order, although some twice',
    find: ({ feed: { taken = [] } }) => {
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
  },
]

/** Discrepancies that record one end after another. */
const CAUSES = ['success_after_failure', 'failure_after_success']

function listCaused(event: ToldEvent): string[] {
  if (event.type !== 'discrepancy.found' || !CAUSES.includes(event.data.kind)) return []
  return event.data.refundId === null ? [] : [event.data.refundId]
}

/** Lists the payment that grew by what no refund explains, or by a refund made at the portal. */
function listGrown(event: ToldEvent): string[] {
  if (isOfExternal(event)) return [event.data.paymentId]
  if (event.type !== 'discrepancy.found' || event.data.kind !== 'unexplained_growth') return []
  return event.data.paymentId === null ? [] : [event.data.paymentId]
}

function hasEnd({ status }: RefundEvent['data']): boolean {
  return isEnded(status) || status === 'needs_review'
}
