import type { Config } from '../config/config.ts'
import { isShownByPayment, type RefundDraft } from './lifecycle.ts'
import type { ExternalDraft, Finding, LockedRefunds } from './types.ts'

type Settings = Pick<Config, 'REFUND_RESOLVE_FOR_MS'>

const isOwnUnshown = ({ now }: RefundDraft) => now.status === 'succeeded' && !isShownByPayment(now)

const isExternalUnshown = ({ now }: ExternalDraft) => now.outcome === null && !now.matched

/** The side of this service, of a refund that was notified and does not show. */
export const NO_GROWTH = 'no increase of the refunded amount shows it'

/**
 * Lists refunds that happened, as the gateway says, and that no growth of the refunded amount shows, each with how long
 * until a person is told (ms): `REFUND_RESOLVE_FOR_MS` after ours was sent, or another is known.
 */
function listUnshown({ drafts, external }: LockedRefunds, settings: Settings) {
  const own = drafts.filter(isOwnUnshown).map(({ now: { refundId, paymentId, sinceSentMs } }) => {
    const sides = { ours: 'succeeded', theirs: NO_GROWTH }
    const finding: Finding = { kind: 'refund_without_growth', ...sides, paymentId, refundId }
    return { finding, sinceMs: sinceSentMs ?? 0 }
  })
  const others = external
    .filter(isExternalUnshown)
    .map(({ now: { requestId, amount, paymentId, sinceSeenMs } }) => {
      const theirs = `success notification, request ${requestId}, amount ${amount}`
      const finding: Finding = {
        kind: 'external_refund_unmatched',
        ours: NO_GROWTH,
        theirs,
        paymentId,
      }
      return { finding, sinceMs: sinceSeenMs }
    })
  return [...own, ...others].map(({ finding, sinceMs }) => ({
    finding,
    inMs: settings.REFUND_RESOLVE_FOR_MS - sinceMs,
  }))
}

/** Finds the refunds that no growth has shown in time. */
export const findUnshown = (locked: LockedRefunds, settings: Settings): Finding[] =>
  listUnshown(locked, settings).flatMap(({ finding, inMs }) => (inMs <= 0 ? [finding] : []))

/** How long until `findUnshown` finds another one (ms). */
export function untilUnshown(locked: LockedRefunds, settings: Settings): number | undefined {
  const waits = listUnshown(locked, settings).flatMap(({ inMs }) => (inMs > 0 ? [inMs] : []))
  return waits.length === 0 ? undefined : Math.min(...waits)
}
