import { isUnsent } from '../../../refunds/review/cancel-refund.ts'
import { findObstacle, type RefundOutcome } from '../../../refunds/review/check-decision.ts'
import type { ConsoleContext } from '../../context.ts'
import type { ConsoleRequest } from '../../env.ts'
import { formatTimeLeft } from '../../format-duration.ts'
import { hasScope } from '../../permissions.ts'
import { TEXTS } from '../../texts/en.ts'
import type { ShownRefundPage } from './read-refund.ts'

const { notNow } = TEXTS.decisions

/** What the page of a refund offers to a person, and why it does not offer the rest. */
export type Offers = {
  approve: boolean
  cancel: boolean
  outcomes: RefundOutcome[]
  annotate: boolean
  showsProof: boolean
  obstacles: string[]
}

/** States in which the evidence stands beside the decision, or explains why there is none yet. */
const SHOWS_PROOF = ['accepted', 'unknown', 'needs_review']

/** Finds what a person may do with a refund now. The domain checks each of it again. */
export function findOffers(ctx: ConsoleContext, c: ConsoleRequest, shown: ShownRefundPage): Offers {
  const { found, view, decidable, isOwn, onlyOneself } = shown
  const waits = view.status === 'awaiting_approval'
  const isOperator = hasScope(c, 'ops')
  const mayDecide = isOperator && (!isOwn || onlyOneself)
  const outcomes = mayDecide ? listOutcomes(ctx, shown) : []
  const approve = waits && hasScope(c, 'refunds:approve') && !isOwn
  const cancel = hasScope(c, 'refunds:write') && isUnsent(found.refund)
  const obstacles = [
    ...(waits && isOwn ? [notNow.own] : []),
    ...(isOperator && isOwn && !onlyOneself && !waits ? [notNow.ownDecision] : []),
    ...(mayDecide && outcomes.length === 0 ? explainObstacle(ctx, shown) : []),
    ...(isUnsent(found.refund) && (view.hold || view.accountHold) ? [notNow.hold] : []),
  ]
  const isIdle = !approve && !cancel && outcomes.length === 0 && obstacles.length === 0
  return {
    approve,
    cancel,
    outcomes,
    annotate:
      isOperator && (SHOWS_PROOF.includes(decidable.status) || shown.review.notes.length > 0),
    showsProof: SHOWS_PROOF.includes(decidable.status) || outcomes.length > 0,
    obstacles: isIdle ? [notNow.noScope] : obstacles,
  }
}

function listOutcomes({ config }: ConsoleContext, { decidable }: ShownRefundPage): RefundOutcome[] {
  const all: readonly RefundOutcome[] = ['succeeded', 'failed', 'returned']
  return all.filter((outcome) => findObstacle(decidable, outcome, config) === undefined)
}

function explainObstacle({ config }: ConsoleContext, { decidable }: ShownRefundPage): string[] {
  // Before it is sent there are the approval and the cancellation, which explain themselves.
  const obstacle = findObstacle(decidable, 'succeeded', config)
  if (obstacle === undefined || obstacle.why === 'not_sent') return []
  if (obstacle.why === 'too_early') return [notNow.too_early(formatTimeLeft(obstacle.leftMs))]
  return [notNow[obstacle.why]]
}
