import { isCancellable } from '../../../decisions/cancellation.ts'
import {
  findObstacle,
  needsAnother,
  type Obstacle,
  OUTCOMES,
  type RefundOutcome,
} from '../../../decisions/outcomes.ts'
import type { ConsoleContext } from '../../context.ts'
import type { ConsoleRequest } from '../../env.ts'
import { hasScope } from '../../permissions.ts'
import { t } from '../../view.ts'
import { formatTimeLeft } from '../../words.ts'
import type { ShownRefundPage } from './read-refund.ts'

/** What the page of a refund offers to a person, and why it does not offer the rest. */
export type Offers = {
  approve: boolean
  decline: boolean
  cancel: boolean
  /** To say that it happened, of a refund whose success was only concluded. */
  confirm: boolean
  outcomes: RefundOutcome[]
  /** Nobody else can decide, so the person may: it is recorded. */
  alone: 'asked' | 'decided' | undefined
  annotate: boolean
  showsProof: boolean
  obstacles: string[]
}

/** States in which the evidence stands beside the decision, or explains why there is none yet. */
const SHOWS_PROOF = ['accepted', 'unknown', 'needs_review']

/** Finds what a person may do with a refund now. The domain checks each of it again. */
export function findOffers(ctx: ConsoleContext, c: ConsoleRequest, shown: ShownRefundPage): Offers {
  const { found, view, decidable, decider, isOwn, onlyOneself, mayBeGrowth } = shown
  const waits = view.status === 'awaiting_approval'
  const unsent = isCancellable(found.refund)
  const isOperator = hasScope(c, 'ops')
  const mayDecide = isOperator && (!isOwn || onlyOneself)
  const outcomes = mayDecide ? listOutcomes(ctx, shown) : []
  const approve = waits && hasScope(c, 'refunds:approve') && !isOwn
  const mayCancel = hasScope(c, 'refunds:write') && unsent
  const cancel = mayCancel && !mayBeGrowth
  const obstacles = [
    ...(waits && isOwn ? [t('decisions.notNow.own')] : []),
    ...(isOperator && isOwn && !onlyOneself && !waits ? [t('decisions.notNow.ownDecision')] : []),
    ...(mayDecide ? explainObstacles(ctx, shown, outcomes) : []),
    ...((mayCancel || approve) && mayBeGrowth ? [t('decisions.notNow.growth')] : []),
    ...(unsent && (view.hold || view.accountHold) ? [t('decisions.notNow.hold')] : []),
  ]
  const isIdle = !approve && !cancel && outcomes.length === 0 && obstacles.length === 0
  const again = outcomes.some((outcome) => needsAnother(decidable, outcome, decider))
  return {
    approve,
    decline: approve && !mayBeGrowth,
    cancel,
    confirm: view.inferred && outcomes.includes('succeeded'),
    outcomes,
    alone: onlyOneself ? 'asked' : again ? 'decided' : undefined,
    annotate:
      isOperator && (SHOWS_PROOF.includes(decidable.status) || shown.review.notes.length > 0),
    showsProof: SHOWS_PROOF.includes(decidable.status) || outcomes.length > 0,
    obstacles: isIdle ? [t('decisions.notNow.noScope')] : obstacles,
  }
}

function listOutcomes(ctx: ConsoleContext, shown: ShownRefundPage): RefundOutcome[] {
  return OUTCOMES.filter((outcome) => findObstacleTo(ctx, shown, outcome) === undefined)
}

function findObstacleTo(
  { config }: ConsoleContext,
  { decidable, decider }: ShownRefundPage,
  outcome: RefundOutcome,
): Obstacle | undefined {
  return findObstacle(decidable, outcome, config, decider)
}

/** Why nothing can be decided; beside what can, only what another person can decide, or the same one later. */
function explainObstacles(
  ctx: ConsoleContext,
  shown: ShownRefundPage,
  offered: readonly RefundOutcome[],
): string[] {
  const ofOthers = OUTCOMES.flatMap((outcome) => {
    const obstacle = findObstacleTo(ctx, shown, outcome)
    const isOfOthers = obstacle?.why === 'same_person' || obstacle?.why === 'too_early_alone'
    return isOfOthers ? [explainObstacle(obstacle)] : []
  })
  if (ofOthers.length > 0) return [...new Set(ofOthers)]
  const first = findObstacleTo(ctx, shown, 'succeeded')
  // Before it is sent there are the approval and the cancellation, which explain themselves.
  if (offered.length > 0 || first === undefined || first.why === 'not_sent') return []
  return [explainObstacle(first)]
}

function explainObstacle(obstacle: Obstacle): string {
  if (obstacle.why === 'too_early' || obstacle.why === 'too_early_alone') {
    return t(`decisions.notNow.${obstacle.why}`, { duration: formatTimeLeft(obstacle.leftMs) })
  }
  return t(`decisions.notNow.${obstacle.why}`)
}
