import {
  DECISIONS,
  type Decision,
  findObstacle,
  isCancellable,
  needsAnother,
  type Obstacle,
  OUTCOMES,
  type RefundOutcome,
} from '../decisions/obstacles.ts'
import type { ConsoleContext } from './context.ts'
import type { ShownRefundPage } from './refund-subject.ts'
import { can, t } from './view.ts'
import { formatTimeLeft } from './words.ts'

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
export function findOffers(ctx: ConsoleContext, shown: ShownRefundPage): Offers {
  const { found, view, decidable, beside } = shown
  const find = (decision: Decision) => findObstacle(decidable, decision, ctx.config, beside)
  const may = (decision: Decision) => can(DECISIONS[decision].scope)
  const isOffered = (decision: Decision) => may(decision) && find(decision) === undefined
  const outcomes = OUTCOMES.filter(isOffered)
  const offered = { approve: isOffered('approve'), decline: isOffered('decline') }
  const cancel = isOffered('cancel')
  const unsent = isCancellable(found.refund)
  const obstacles = [
    ...(find('approve')?.why === 'asked' ? [t('decisions.notNow.asked')] : []),
    ...UNSENT.flatMap((decision) => (may(decision) ? explain(find(decision)) : [])),
    ...(may('succeeded') ? explainOutcomes(find, outcomes) : []),
    ...(unsent && (view.hold || view.accountHold) ? [t('decisions.notNow.hold')] : []),
  ]
  const isIdle = !offered.approve && !cancel && outcomes.length === 0 && obstacles.length === 0
  const again = outcomes.some((outcome) => needsAnother(decidable, outcome, beside))
  const isShown = SHOWS_PROOF.includes(decidable.status)
  return {
    ...{ ...offered, cancel, outcomes },
    confirm: view.inferred && outcomes.includes('succeeded'),
    alone: beside.asked && beside.alone ? 'asked' : again ? 'decided' : undefined,
    annotate: can('ops') && (isShown || shown.review.notes.length > 0),
    showsProof: isShown || outcomes.length > 0,
    obstacles: isIdle ? [t('decisions.notNow.noScope')] : [...new Set(obstacles)],
  }
}

/** Decisions that end a refund as one that was not sent, or send it. */
const UNSENT = ['approve', 'decline', 'cancel'] as const

/** Why nothing can be decided; beside what can, only what another person can decide, or the same one later. */
function explainOutcomes(
  find: (decision: Decision) => Obstacle | undefined,
  offered: readonly RefundOutcome[],
): string[] {
  const first = find('succeeded')
  if (first?.why === 'asked') return [t('decisions.notNow.asked')]
  const ofOthers = OUTCOMES.flatMap((outcome) => {
    const obstacle = find(outcome)
    const isOfOthers = obstacle?.why === 'same_person' || obstacle?.why === 'too_early_alone'
    return isOfOthers ? explain(obstacle) : []
  })
  if (ofOthers.length > 0) return ofOthers
  // Before it is sent there are the approval and the cancellation, which explain themselves.
  return offered.length > 0 || first?.why === 'not_sent' ? [] : explain(first)
}

function explain(obstacle: Obstacle | undefined): string[] {
  if (!obstacle || obstacle.why === 'not_awaiting' || obstacle.why === 'not_cancellable') return []
  if ('leftMs' in obstacle)
    return [t(`decisions.notNow.${obstacle.why}`, { duration: formatTimeLeft(obstacle.leftMs) })]
  return [t(`decisions.notNow.${obstacle.why}`)]
}
