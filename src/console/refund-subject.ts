import { narrowMerchants } from '../access/authenticate.ts'
import { listDeciders } from '../access/principal.ts'
import { readRefundReview } from '../decisions/discrepancies.ts'
import { findMayRelease } from '../decisions/holds.ts'
import {
  type Circumstances,
  DECISIONS,
  type Decision,
  describeDecidable,
  findObstacle,
  isCancellable,
  needsAnother,
  type Obstacle,
  OUTCOMES,
  type RefundOutcome,
  UNSENT_DECISIONS,
} from '../decisions/obstacles.ts'
import { findMayEnd, readStanding } from '../decisions/second-person.ts'
import { readShownVersion } from '../decisions/unit-of-work.ts'
import { listOfTransaction } from '../discrepancies/store.ts'
import { findPayment } from '../payments/find-payments.ts'
import { isNotified, readGrowth } from '../refunds/evidence.ts'
import { type FoundRefund, findRefund } from '../refunds/find.ts'
import { STATES } from '../refunds/lifecycle.ts'
import { isBeforeRestore } from '../refunds/lock-refunds.ts'
import { mayBeItsOwnGrowth } from '../refunds/measure.ts'
import { readProof } from '../refunds/proof.ts'
import { decryptReceiver } from '../refunds/receiver.ts'
import { showRefund } from '../refunds/view.ts'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { can, t } from './view.ts'
import { formatTimeLeft } from './words.ts'

/** How many discrepancies of the transaction are searched for those of the refund. */
const MAX_DISCREPANCIES = 50

export type ShownRefundPage = Awaited<ReturnType<typeof readRefundPage>>

/** @throws DomainError `refund_not_found`, also for an account that the person may not see */
export async function findPathRefund(ctx: ConsoleContext, c: ConsoleRequest): Promise<FoundRefund> {
  const { merchant, refundId = '' } = c.req.param()
  return await findRefund(ctx, narrowMerchants(c.get('access'), merchant), refundId)
}

/** Reads what the page of a refund shows. The version is read first, so that any later change makes it outdated. */
export async function readRefundPage(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  key: { merchantCode: string; refundId: string },
) {
  const access = c.get('access')
  const { merchantCode, refundId } = key
  const version = await readShownVersion(ctx.db.sql, key)
  const found = await findRefund(ctx, [merchantCode], refundId)
  const { refund } = found
  const ofPayment = {
    ...{ merchantCode, transactionId: refund.transactionId, paymentId: refund.paymentId },
    ...{ refundId: null, decided: refundId },
  }
  const isHeld = refund.hold !== null && can('ops')
  const held = { merchantCode, target: 'refund' as const, id: refundId }
  const [payment, proof, review, all, deciders, mayRelease] = await Promise.all([
    findPayment(ctx, [merchantCode], refund.paymentId),
    readProof(ctx, found),
    readRefundReview(ctx.db.sql, refund),
    listOfTransaction(ctx.db.sql, refund, MAX_DISCREPANCIES),
    listDeciders(ctx.db.sql, merchantCode),
    isHeld ? findMayRelease(ctx.db.sql, access, held) : undefined,
  ])
  const growth = await readGrowth(ctx.db.sql, refund)
  const standing = await readStanding(ctx.db.sql, refund, access)
  const mayDecide = standing.asked ? 'free' : await findMayEnd(ctx.db.sql, access, ofPayment)
  const beside: Circumstances = {
    ...standing,
    notified: await isNotified(ctx.db.sql, refund),
    grown: growth !== undefined && mayBeItsOwnGrowth(growth.unmatched, refund),
    forgotten: await isBeforeRestore(ctx.db.sql, refund),
  }
  return {
    ...{ found, payment, version, proof, review, deciders, mayRelease, mayDecide, beside },
    receiver: standing.asked || can('refunds:approve') ? readReceiver(ctx, found) : undefined,
    view: showRefund(ctx.encryption, found),
    discrepancies: all.filter((one) => one.refundId === refundId && one.resolvedAt === null),
    decidable: describeDecidable(refund, ctx.now()),
  }
}

/** People compare the receiver with what the customer wrote, as long as the refund is not sent. */
function readReceiver({ encryption }: ConsoleContext, { refund }: FoundRefund) {
  const { status, receiver, refundId } = refund
  if (receiver === null || !STATES[status].unsent) return undefined
  return decryptReceiver(encryption, receiver, 'receiver', refundId)
}

export type Offers = ReturnType<typeof findOffers>

/** Finds what the person may do with the refund now. The domain checks each action again. */
export function findOffers(ctx: ConsoleContext, shown: ShownRefundPage) {
  const { found, view, decidable, beside, mayDecide } = shown
  const find = (decision: Decision) => findObstacle(decidable, decision, ctx.config, beside)
  const may = (decision: Decision) => can(DECISIONS[decision].scope)
  const isOffered = (decision: Decision) => may(decision) && find(decision) === undefined
  const possible = OUTCOMES.filter(isOffered)
  const outcomes = mayDecide === 'another' ? [] : possible
  const isHeld = isCancellable(found.refund) && Boolean(view.hold ?? view.accountHold)
  const obstacles = [
    ...(find('approve')?.why === 'asked' ? [t('decisions.notNow.asked')] : []),
    ...UNSENT_DECISIONS.flatMap((decision) => (may(decision) ? explain(find(decision)) : [])),
    ...(may('succeeded') ? explainOutcomes(find, possible) : []),
    ...(possible.length > 0 && mayDecide !== 'free'
      ? [t(`discrepancyPage.ownRefund.${mayDecide}`)]
      : []),
    ...(isHeld ? [t('decisions.notNow.hold')] : []),
  ]
  const isAny = UNSENT_DECISIONS.some(isOffered) || outcomes.length > 0 || obstacles.length > 0
  const again = outcomes.some((outcome) => needsAnother(decidable, outcome, beside))
  // The evidence is shown with the decision, or explains why there is none yet.
  const isShown = STATES[decidable.status].awaited || decidable.status === 'needs_review'
  return {
    ...{ isOffered, outcomes },
    /** Whether a success that was only inferred can be confirmed. */
    confirm: view.inferred && outcomes.includes('succeeded'),
    /** The person may decide because nobody else can, and this is recorded. */
    alone: beside.asked && beside.alone ? ('asked' as const) : again ? ('decided' as const) : null,
    annotate: can('ops') && (isShown || shown.review.notes.length > 0),
    showsProof: isShown || outcomes.length > 0,
    obstacles: isAny ? [...new Set(obstacles)] : [t('decisions.notNow.noScope')],
  }
}

/** Explains why no outcome can be decided, or which ones only another person can decide, or this one only later. */
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
  // Before the refund is sent, the approval and the cancellation explain themselves.
  return offered.length > 0 || first?.why === 'not_sent' ? [] : explain(first)
}

function explain(obstacle: Obstacle | undefined): string[] {
  if (!obstacle || obstacle.why === 'not_awaiting' || obstacle.why === 'not_cancellable') return []
  if ('leftMs' in obstacle)
    return [t(`decisions.notNow.${obstacle.why}`, { duration: formatTimeLeft(obstacle.leftMs) })]
  return [t(`decisions.notNow.${obstacle.why}`)]
}
