import { DECISIONS, type Obstacle } from '../../../../src/decisions/obstacles.ts'
import { DISCREPANCY_KINDS } from '../../../../src/discrepancies/kinds.ts'
import type { RefusalCode } from '../../../../src/errors.ts'
import {
  MOVES,
  type MoveName,
  type ReviewReason,
  STATES,
} from '../../../../src/refunds/lifecycle.ts'

/** By what the cause of a change tells which move it was. */
const CAUSES: Record<MoveName, RegExp> = {
  approved: /^approved/,
  declined: /^declined/,
  cancelled: /^cancelled/,
  approval_expired: /^not approved within \d+ ms \(\w+\)$/,
  not_sent_in_time: /^not sent within \d+ ms \(\w+\)$/,
  check_failed: /^check before sending.*nothing was sent$/,
  may_have_moved: /within \d+ ms \(\w+\), but |^check before sending: .*; (the gateway|\d+ of)/,
  attempt_recorded: /^attempt recorded/,
  attempt_found: /an attempt had been sent whose record was lost/,
  accepted: /^the gateway accepted the refund/,
  accepted_after_decision: /^the gateway had accepted the refund/,
  refused: /^the gateway answered with/,
  unanswered: /^no valid answer|was interrupted/,
  not_written: /^not sent: /,
  not_written_again: /^not sent: /,
  notified_success: /notified that the refund succeeded/,
  notified_contradiction: /notified both|notified a failure \(code \w+\) (after|and|while|of)/,
  notified_unsent: /but it was not sent from here|known it was not sent|with another payment/,
  inferred: /^inferred/,
  doubted: /may belong to another refund$/,
  grown_after_failure: /^it had failed, but/,
  failure_confirmed: /and two later queries/,
  failure_unclear: /and no success within/,
  refusal_confirmed: /did not increase within \d+ ms$/,
  refusal_unclear: /did not increase within \d+ ms; /,
  given_up: /^still unresolved/,
  decided_succeeded: /^decided as succeeded/,
  decided_failed: /^decided as failed/,
  decided_returned: /^decided as returned/,
}

/** Why something cannot be decided. */
const REFUSALS: Record<Obstacle['why'], true> = {
  ...{ not_awaiting: true, expired: true, notified: true, asked: true, grown: true },
  ...{ not_cancellable: true, not_sent: true, being_sent: true, failed_unsent: true },
  ...{ failed_already: true, succeeded_already: true, not_succeeded: true, released: true },
  ...{ same_person: true, too_early: true, too_early_alone: true },
}

const REVIEWS: Record<ReviewReason, true> = {
  ...{ contradicted: true, no_evidence: true, rule_missing: true },
}

/** What `judgeRequest` refuses. */
const REFUSED: readonly RefusalCode[] = [
  ...(['payment_not_refundable', 'held', 'receiver_required', 'exceeds_refundable'] as const),
  ...(['too_many_open_refunds', 'refund_cap_exceeded', 'invalid_request'] as const),
]

const OF_GROWTH = ['unexplained_growth', 'refunded_amount_fell']

/** The discrepancies that are found of refunds. */
const KINDS = Object.entries(DISCREPANCY_KINDS).flatMap(([kind, facts]) =>
  'namesRefund' in facts || OF_GROWTH.includes(kind) ? [kind] : [],
)

/**
 * Lists every move from each of its statuses, every status, reason for a review, decision, refusal and discrepancy that
 * no play has reached.
 */
export function listUnreached(reached: ReadonlySet<string>): string[] {
  const all = [...reached]
  const moves = Object.entries(MOVES).flatMap(([name, { from, to }]) =>
    from.flatMap((status) => {
      const start = `${status} → ${to}: `
      const cause = CAUSES[name as MoveName]
      const isMade = all.some((one) => one.startsWith(start) && cause.test(one.slice(start.length)))
      return isMade ? [] : [`${status}: ${name}`]
    }),
  )
  const states = Object.keys(STATES).filter((name) => !all.some((one) => one.startsWith(name)))
  const names = { approve: 'approved', decline: 'declined', cancel: 'cancelled' }
  const decisions = Object.keys(DECISIONS).filter((name) => {
    const decided = name in names ? names[name as keyof typeof names] : name
    return !reached.has(`decided: ${decided}`)
  })
  const refusals = Object.keys(REFUSALS).filter((why) => !reached.has(`undecidable: ${why}`))
  const others = [
    ...Object.keys(REVIEWS).map((reason) => `needs_review: ${reason}`),
    ...REFUSED.map((code) => `refused: ${code}`),
    ...KINDS.map((kind) => `found: ${kind}`),
  ].filter((one) => !reached.has(one))
  return [...moves, ...states, ...decisions, ...refusals, ...others]
}
