import { describe, expect, it } from 'vitest'
import { refunds } from '../../../src/db/schema.ts'
import type { GatewayOutcome } from '../../../src/gateway/types.ts'
import { applyOutcome } from '../../../src/refunds/answer.ts'
import { applyDeadlines } from '../../../src/refunds/deadlines.ts'
import {
  MOVES,
  type MoveName,
  move,
  type RefundDraft,
  type RefundRow,
  type RefundStatus,
  sendToReview,
  startDraft,
} from '../../../src/refunds/lifecycle.ts'
import {
  applyFailureNotification,
  applySuccessNotification,
} from '../../../src/refunds/notifications.ts'
import { makeRefundRow, QUIET, REFUND_SETTINGS } from '../../support/refund-row.ts'

/** Moves a draft, as an event that happens to a refund in its status. */
type Play = { facts?: Partial<RefundRow>; event(draft: RefundDraft): void }

const { REFUND_CONFIRM_FAILED_MS: CONFIRM, REFUND_RESOLVE_FOR_MS: RESOLVE } = REFUND_SETTINGS
const notification = { id: 7, receivedAt: '2026-01-02', beforeSnapshot: true }
const succeed = (draft: RefundDraft) =>
  void applySuccessNotification(draft, { ...notification, code: '0' })
const fail = (draft: RefundDraft) =>
  void applyFailureNotification(draft, { ...notification, code: '1' })
const judge = (draft: RefundDraft) =>
  void applyDeadlines(draft, { mayHaveMoved: undefined, snapshot: QUIET }, REFUND_SETTINGS)
const doubt = (draft: RefundDraft) =>
  void applyDeadlines(draft, { mayHaveMoved: 'it grew', snapshot: QUIET }, REFUND_SETTINGS)
const answer = (outcome: GatewayOutcome<string | undefined>) => (draft: RefundDraft) => {
  const before = { ...draft.now, status: 'pending' as const, attempts: 0 }
  const attempt = { before, recorded: before }
  applyOutcome(draft, { attempt, call: { outcome } }, '2026-01-02')
}
const CONFIRMED = { noGrowthSince: '2026-01-01', sinceNoGrowthMs: CONFIRM }
const notified = { failureCode: '1', failureBeforeSnapshot: true, sinceFailureNotifiedMs: CONFIRM }
const refused = { unanswered: false, refusedBeforeSnapshot: true, sinceRefusedMs: CONFIRM }
const UNSENT = { attempts: 0, firstSentAt: null, lastSentAt: null }
const LATE = { ...UNSENT, sinceRequestedMs: REFUND_SETTINGS.REFUND_SEND_WITHIN_MS }

const PLAYS: Record<string, Play> = {
  'success notified': { event: succeed },
  'success notified after a failure': { facts: { failureCode: '1' }, event: succeed },
  'failure notified': { event: fail },
  'failure notified, unsent': { facts: UNSENT, event: fail },
  'failure notified after a success': { facts: { successNotifiedAt: '2026-01-01' }, event: fail },
  'failure confirmed': { facts: { ...notified, ...CONFIRMED }, event: judge },
  'failure with an open code': { facts: { ...notified, failureCode: '5' }, event: judge },
  'refusal confirmed': { facts: { ...refused, ...CONFIRMED, refusedCode: '33' }, event: judge },
  'refusal unclear': { facts: { ...refused, ...CONFIRMED, refusedCode: '24' }, event: judge },
  'time over': { facts: { sinceSentMs: RESOLVE }, event: judge },
  'not approved or sent in time': { facts: LATE, event: judge },
  'not approved or sent in time, perhaps moved': { facts: LATE, event: doubt },
}

const ANSWERS: Record<string, (draft: RefundDraft) => void> = {
  'code 0': answer({ kind: 'answered', value: 'G1', message: 'ok' }),
  'another code': answer({ kind: 'rejected', code: '33', message: 'no' }),
  'no answer': answer({ kind: 'unknown', reason: 'reset' }),
  'nothing written': answer({ kind: 'unavailable', reason: 'refused' }),
}

/** What an event makes of a refund in each status; a status that it leaves alone is not named. */
function play({ facts = {}, event }: Play, statuses: readonly RefundStatus[]) {
  return Object.fromEntries(
    statuses.flatMap((status) => {
      const draft = startDraft(makeRefundRow({ status, inferred: false, ...facts }))
      event(draft)
      expect(draft.transitions.length > 0).toBe(draft.now.status !== status)
      expect(draft.missing).toBeUndefined()
      return draft.now.status === status ? [] : [[status, draft.now.status]]
    }),
  )
}

const UNENDED = ['pending', 'sending', 'accepted', 'unknown'] as const
const to = (status: RefundStatus, ...from: readonly RefundStatus[]) =>
  Object.fromEntries(from.map((one) => [one, status]))

describe('each move in each status', () => {
  const cause = { reason: 'played' }
  const proven = { inferred: true, matched: true, failureReason: '1', review: null }
  const moves = Object.entries(MOVES) as [MoveName, { from: readonly RefundStatus[]; to: string }][]
  const cells = moves.flatMap(([name, { from, to: after }]) =>
    refunds.status.enumValues.map((status) => ({
      ...{ name, status, after },
      isAdmitted: from.includes(status),
    })),
  )

  it('is made where a rule admits it, and otherwise leaves the refund to a person', () => {
    for (const { name, status, after, isAdmitted } of cells) {
      const draft = startDraft(makeRefundRow({ ...proven, status }))
      move(draft, name, cause)
      const { now, missing, transitions } = draft
      const expected = isAdmitted ? after : 'needs_review'
      expect([name, status, now.status, missing?.move]).toEqual([
        ...[name, status, expected],
        isAdmitted ? undefined : name,
      ])
      expect(transitions).toMatchObject([{ from: status, to: expected }])
      if (!isAdmitted) expect(now).toMatchObject({ review: 'rule_missing', matched: false })
    }
  })

  it('says who is the source of a failure, and nothing of one that is none', () => {
    for (const [name, { from, to: after }] of moves) {
      const draft = startDraft(makeRefundRow({ ...proven, status: from[0] ?? 'unknown' }))
      move(draft, name, cause)
      const { failureSource, failureReason } = draft.now
      expect([name, failureSource !== null]).toEqual([name, after === 'failed'])
      const isCleared = ['accepted', 'succeeded', 'returned'].includes(after)
      expect([name, failureReason]).toEqual([name, isCleared ? null : '1'])
    }
  })

  it('that leaves it to a person only changes the reason while it is left to one', () => {
    const draft = startDraft(makeRefundRow({ status: 'needs_review', review: 'no_evidence' }))
    sendToReview(draft, 'notified_contradiction', 'contradicted', cause)
    expect(draft).toMatchObject({ transitions: [], now: { review: 'contradicted' } })
  })
})

describe('each event in each status', () => {
  it.each([
    [
      'success notified',
      to('succeeded', 'awaiting_approval', ...UNENDED, 'failed', 'needs_review'),
    ],
    [
      'success notified after a failure',
      to('needs_review', 'awaiting_approval', ...UNENDED, 'succeeded', 'failed'),
    ],
    ['failure notified', to('needs_review', 'awaiting_approval', 'pending', 'succeeded')],
    ['failure notified, unsent', to('needs_review', 'awaiting_approval', 'pending', 'succeeded')],
    [
      'failure notified after a success',
      to('needs_review', 'awaiting_approval', ...UNENDED, 'succeeded', 'failed'),
    ],
    ['failure confirmed', to('failed', 'accepted', 'unknown')],
    ['failure with an open code', to('needs_review', 'accepted', 'unknown')],
    ['refusal confirmed', to('failed', 'unknown')],
    ['refusal unclear', to('needs_review', 'unknown')],
    ['time over', to('needs_review', 'unknown')],
    ['not approved or sent in time', to('failed', 'awaiting_approval', 'pending')],
    [
      'not approved or sent in time, perhaps moved',
      to('needs_review', 'awaiting_approval', 'pending'),
    ],
  ])('%s', (name, expected) => {
    const one = PLAYS[name]
    if (!one) throw new Error(`no play ${name}`)
    expect(play(one, refunds.status.enumValues)).toEqual(expected)
  })

  it.each([
    ['code 0', to('accepted', 'sending', 'unknown')],
    ['another code', to('unknown', 'sending')],
    ['no answer', to('unknown', 'sending')],
    ['nothing written', to('pending', 'sending', 'unknown')],
  ])('an attempt under way, %s', (name, expected) => {
    const event = ANSWERS[name]
    if (!event) throw new Error(`no answer ${name}`)
    const seen = ['sending' as const, 'unknown' as const].map((status) => {
      const draft = startDraft(makeRefundRow({ status }))
      event(draft)
      return [status, draft.now.status]
    })
    expect(seen.filter(([from, after]) => from !== after)).toEqual(Object.entries(expected))
  })
})
