import { weighEvidence } from './evidence.ts'
import { isSameRefund } from './ledgers.ts'
import { type Rule, rule } from './rules.ts'

/** Refunds made at the gateway's portal, at rest. */
export const OF_PORTAL: readonly Rule[] = [
  rule('lost', 'a notified portal refund of a known payment is stored', (ledgers) => {
    const { acknowledged, stored } = ledgers
    const { told } = weighEvidence(ledgers)
    const known = new Set(stored.payments.map(({ id }) => id))
    const kept = new Map(stored.external.map((one) => [one.requestId, one]))
    return acknowledged.portal
      .filter(({ requestId, paymentId }) => told.has(requestId) && known.has(paymentId))
      .filter((one) => !isSameRefund(one, kept.get(one.requestId)))
      .map(({ requestId }) => requestId)
  }),
  rule('doubled', 'a refund of ours is not taken for one made at the portal', (ledgers) => {
    const { acknowledged, stored } = ledgers
    const made = new Set(acknowledged.portal.map(({ requestId }) => requestId))
    const ours = new Set(acknowledged.asked.map(({ refundId }) => refundId))
    const kept = new Map(stored.refunds.map(({ id, status }) => [id, status]))
    // One whose row was lost is external until it is requested again; then it is ours for good, or a person decides.
    const isOurs = (requestId: string, state: string) =>
      state === 'own' || kept.get(requestId) === 'needs_review'
    const isExplained = ({ requestId, state }: (typeof stored.external)[number]) =>
      made.has(requestId) ||
      (ours.has(requestId) && (kept.has(requestId) ? isOurs(requestId, state) : isLost(requestId)))
    const lost = new Set(acknowledged.refunds.flatMap((one) => (one.isAtRisk ? one.refundId : [])))
    const { shaken } = weighEvidence(ledgers)
    const isLost = (requestId: string) =>
      lost.has(requestId) ||
      acknowledged.asked.some(
        ({ refundId, paymentId }) => refundId === requestId && shaken.has(paymentId),
      )
    return stored.external
      .filter((one) => !isExplained(one))
      .map(({ requestId, state }) => `${requestId}, ${state}`)
  }),
  rule(
    'stuck',
    'a notified portal refund is found in what was refunded since first sight',
    (ledgers) => {
      const { acknowledged, stored } = ledgers
      const { told, silent, shaken } = weighEvidence(ledgers)
      const torn = new Set(
        acknowledged.portal.flatMap((one) => (one.isBefore ? one.paymentId : [])),
      )
      const states = new Map(stored.external.map(({ requestId, state }) => [requestId, state]))
      return acknowledged.portal
        .filter(({ requestId, paymentId }) => {
          const isClear = !torn.has(paymentId) && !silent.has(paymentId) && !shaken.has(paymentId)
          const state = states.get(requestId)
          return isClear && told.has(requestId) && state !== undefined && state !== 'matched'
        })
        .map(({ requestId }) => `${requestId} is ${states.get(requestId)}`)
    },
  ),
]
