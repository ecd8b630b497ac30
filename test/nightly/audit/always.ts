import { findRepeated, type Ledgers, type StoredRefund, sumOf, units } from './ledgers.ts'
import { ofRefunds, ofShownPayments, type Rule, rule } from './rules.ts'

const ENDS: readonly string[] = ['succeeded', 'failed', 'returned']

/** What holds at every moment, whoever has been wrong. */
export const ALWAYS: readonly Rule[] = [
  rule('doubled', 'a refund moves money once', ({ moved }) =>
    findRepeated(moved.movements.map(({ requestId }) => requestId)),
  ),
  rule('doubled', 'no more of a payment moves than was paid', ({ moved, witnessed }) =>
    moved.payments
      .filter(({ id, amount }) => sumOf(id, moved.movements) > units(amount))
      .filter(({ id }) => !witnessed?.overdrawn.has(id))
      .map(({ id }) => id),
  ),
  rule(
    'doubled',
    'money moves only if it was requested, or at the portal',
    ({ acknowledged: { asked, portal }, moved }) => {
      const known = new Set([
        ...asked.map(({ refundId }) => refundId),
        ...portal.map(({ requestId }) => requestId),
      ])
      return moved.movements.flatMap(({ requestId }) => (known.has(requestId) ? [] : requestId))
    },
  ),
  ofRefunds('lost', 'a failed refund did not move money', (one, ledgers) => {
    const { id, status } = one
    return status === 'failed' && isTaken(ledgers, id) && !mayBeWronglyFailed(ledgers, one)
  }),
  rule('stuck', 'once people have decided, every refund has ended', ({ stored, phase }) => {
    if (phase !== 'settled') return []
    return [
      ...stored.refunds.filter(({ status }) => !ENDS.includes(status)).map(({ id }) => id),
      ...stored.external
        .filter(({ state }) => state === 'reserved')
        .map(({ requestId }) => requestId),
    ]
  }),
  rule('disordered', 'only what was recorded is sent', ({ stored, moved }) =>
    [...moved.sends].flatMap(([id, { times, lost }]) => {
      const recorded = stored.attempts.filter(({ refundId }) => refundId === id)
      return times - lost > recorded.length ? id : []
    }),
  ),
  rule('doubled', 'a gateway that does not deduplicate is sent a refund once', ({ moved }) =>
    [...moved.sends].flatMap(([id, { times }]) => (!moved.dedupes && times > 1 ? id : [])),
  ),
  ofShownPayments(
    'doubled',
    'what moved, or may move, cannot be refunded again',
    ({ id, amount, refundableAmount }, ledgers) => {
      const left = units(refundableAmount)
      return left > 0n && left + sumAtRisk(id, ledgers) > units(amount)
    },
  ),
  ofShownPayments(
    'doubled',
    'a success that was only inferred stays reserved',
    ({ id, amount, refundedAmount, refundableAmount }, { stored }) => {
      const inferred = stored.refunds.filter((one) => one.status === 'succeeded' && one.inferred)
      const [left, reserved] = [units(refundableAmount), sumOf(id, inferred)]
      return reserved > 0n && left > 0n && units(refundedAmount) + left + reserved > units(amount)
    },
  ),
  ofShownPayments(
    'stuck',
    'once people have decided, all that did not move can be refunded',
    ({ id, amount, refundableAmount }, { moved, phase }) =>
      phase === 'settled' && sumOf(id, moved.movements) + units(refundableAmount) < units(amount),
  ),
  rule(
    'doubled',
    'notifications, transactions, payments and refunds exist once',
    ({ stored, shown }) => {
      const listed = shown?.transactions.flatMap(({ payments }) => payments) ?? []
      return [
        ...findRepeated(stored.notifications.map(({ sha256 }) => sha256)),
        ...findRepeated(stored.transactions.map(({ id }) => id)),
        ...findRepeated(stored.payments.map(({ id }) => id)),
        ...findRepeated(stored.external.map(({ requestId }) => requestId)),
        ...findRepeated(listed.map(({ id }) => id)),
        ...findRepeated(shown?.refunds.map(({ id }) => id) ?? []),
      ]
    },
  ),
]

/** Whether money of a refund moved, or may. */
export function isTaken({ moved }: Ledgers, id: string): boolean {
  return moved.movements.some(({ requestId }) => requestId === id)
}

/** How often a refund was sent, as far as the service can know. */
export function countKnownSends({ moved }: Ledgers, id: string): number {
  const { times, lost } = moved.sends.get(id) ?? { times: 0, lost: 0 }
  return times - lost
}

/** At rest it is a person's, or a discrepancy says so; before, only a person or lost records can be wrong. */
function mayBeWronglyFailed(
  { phase, moved, witnessed }: Ledgers,
  { id, disputed }: StoredRefund,
): boolean {
  if (phase === 'settled') return false
  if (!witnessed) return moved.movements.some((one) => one.requestId === id && one.isAtRisk)
  if (phase === 'rest') return disputed
  return witnessed.misjudged.has(id) || (moved.sends.get(id)?.lost ?? 0) > 0
}

/**
 * What of a payment has moved, or may move, as far as the service can know: refunds of ours that did not fail and were not
 * released, refunds made elsewhere that it was notified of or that were there before, and all others once the newest
 * answer shows as much as has moved.
 */
function sumAtRisk(paymentId: string, ledgers: Ledgers): bigint {
  const { stored, moved, witnessed } = ledgers
  // What did not move, and was said to have moved, is matched to what somebody else moved.
  const isKept = ({ id, status, matched, released }: StoredRefund) =>
    status !== 'failed' && !released && (!matched || isTaken(ledgers, id))
  // Looked up from the payment's side: over all refunds and movements, each audit of a storm took minutes.
  const kept = stored.refunds.filter((one) => one.paymentId === paymentId && isKept(one))
  const done = moved.movements.filter((one) => one.paymentId === paymentId && !one.isPending)
  const refunded = stored.payments.find(({ id }) => id === paymentId)?.refundedAmount ?? '0'
  const isFresh = units(refunded) >= sumOf(paymentId, done)
  const elsewhere = done.filter(({ requestId }) => {
    if (stored.refunds.some((one) => one.id === requestId && isKept(one))) return false
    const isKnown = stored.external.some((one) => one.requestId === requestId)
    return isFresh || (isKnown && !witnessed?.neverHappened.has(requestId))
  })
  return sumOf(paymentId, kept, elsewhere)
}
