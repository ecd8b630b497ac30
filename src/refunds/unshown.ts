import type { Config } from '../config/config.ts'
import { nameNotified } from './external.ts'
import { isShownByPayment, type RefundDraft } from './lifecycle.ts'
import type { ExternalDraft, Finding, LockedRefunds } from './types.ts'

type Settings = Pick<Config, 'REFUND_RESOLVE_FOR_MS'>

const isOwnUnshown = ({ now }: RefundDraft) => !isShownByPayment(now)

const isExternalUnshown = ({ now }: ExternalDraft) => now.outcome === null && !now.matched

const NO_GROWTH = 'no increase of the refunded amount shows it'

const NO_FALL = 'no decrease of the refunded amount shows it'

/**
 * Refunds that happened or came back, as the gateway or a person says, but that the refunded amount does not show: a
 * person is told `REFUND_RESOLVE_FOR_MS` after ours was sent or decided, or another became known.
 */
function listUnshown({ drafts, external }: LockedRefunds, settings: Settings) {
  const own = drafts.filter(isOwnUnshown).map(({ now }) => {
    const { refundId, paymentId, status } = now
    const isBack = status === 'returned'
    const sides = { ours: status, theirs: isBack ? NO_FALL : NO_GROWTH }
    const finding: Finding = { kind: 'refund_without_growth', ...sides, paymentId, refundId }
    const sinceMs = (isBack ? now.sinceResolvedMs : now.sinceSentMs) ?? now.sinceRequestedMs
    return { finding, sinceMs }
  })
  const others = external
    .filter(isExternalUnshown)
    .map(({ now: { requestId, amount, paymentId, sinceSeenMs } }) => {
      const theirs = nameNotified(requestId, amount)
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

export const findUnshown = (locked: LockedRefunds, settings: Settings): Finding[] =>
  listUnshown(locked, settings).flatMap(({ finding, inMs }) => (inMs <= 0 ? [finding] : []))

/** How long until `findUnshown` finds another one (ms). */
export function untilUnshown(locked: LockedRefunds, settings: Settings): number | undefined {
  const waits = listUnshown(locked, settings).flatMap(({ inMs }) => (inMs > 0 ? [inMs] : []))
  return waits.length === 0 ? undefined : Math.min(...waits)
}
