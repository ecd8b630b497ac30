import { weighEvidence } from './evidence.ts'
import { isSameRefund } from './ledgers.ts'
import { nameRefundOf } from './names.ts'
import type { Rule } from './rules.ts'

/** Refunds made at the gateway's portal, and what an account may see. */
export const PORTAL: readonly Rule[] = [
  {
    damage: 'lost',
    rule: 'a notified portal refund of a known payment is stored',
    find: (ledgers) => {
      const { sent, stored } = ledgers
      const { told } = weighEvidence(ledgers)
      const known = new Set(stored.payments.map(({ id }) => id))
      const kept = new Map(stored.external.map((one) => [one.requestId, one]))
      return sent.portal
        .filter(({ requestId, paymentId }) => told.has(requestId) && known.has(paymentId))
        .filter((one) => !isSameRefund(one, kept.get(one.requestId)))
        .map(({ requestId }) => requestId)
    },
  },
  {
    damage: 'doubled',
    rule: 'a refund of ours is not taken for one made at the portal',
    find: (ledgers) => {
      const { sent, stored } = ledgers
      const made = new Set(sent.portal.map(({ requestId }) => requestId))
      const ours = new Set(sent.asked.map(({ key }) => nameRefundOf(key)))
      const kept = new Map(stored.refunds.map(({ id, status }) => [id, status]))
      // One whose row was lost is external until it is requested again; then it is ours for good, or a person decides.
      const isOurs = (requestId: string, state: string) =>
        state === 'own' || kept.get(requestId) === 'needs_review'
      const isExplained = ({ requestId, state }: (typeof stored.external)[number]) =>
        made.has(requestId) ||
        (ours.has(requestId) &&
          (kept.has(requestId) ? isOurs(requestId, state) : isLost(requestId)))
      const lost = new Set(sent.refunds.flatMap((one) => (one.isAtRisk ? one.refundId : [])))
      const { shaken } = weighEvidence(ledgers)
      const isLost = (requestId: string) =>
        lost.has(requestId) ||
        sent.asked.some(
          ({ key, paymentId }) => nameRefundOf(key) === requestId && shaken.has(paymentId),
        )
      return stored.external
        .filter((one) => !isExplained(one))
        .map(({ requestId, state }) => `${requestId}, ${state}`)
    },
  },
  {
    damage: 'stuck',
    rule: 'a notified portal refund is found in what was refunded since first sight',
    find: (ledgers) => {
      const { sent, stored } = ledgers
      const { told, silent, shaken } = weighEvidence(ledgers)
      const torn = new Set(sent.portal.flatMap((one) => (one.isBefore ? one.paymentId : [])))
      const states = new Map(stored.external.map(({ requestId, state }) => [requestId, state]))
      return sent.portal
        .filter(({ requestId, paymentId }) => {
          const isClear = !torn.has(paymentId) && !silent.has(paymentId) && !shaken.has(paymentId)
          const state = states.get(requestId)
          return isClear && told.has(requestId) && state !== undefined && state !== 'matched'
        })
        .map(({ requestId }) => `${requestId} is ${states.get(requestId)}`)
    },
  },
  {
    damage: 'leaked',
    rule: 'an account is shown only what is its own',
    find: ({ stored, shown }) => {
      const own = new Set(
        [...stored.transactions, ...stored.payments, ...stored.refunds].map(({ id }) => id),
      )
      return [
        ...shown.transactions.flatMap(({ id, payments }) => [id, ...payments.map((one) => one.id)]),
        ...shown.refunds.map(({ id }) => id),
      ].filter((id) => !own.has(id))
    },
  },
]
