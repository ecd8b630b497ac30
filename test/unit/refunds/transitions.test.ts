import { describe, expect, it } from 'vitest'
import { applyDeadlines, mayResend, scheduleNextCheck } from '../../../src/refunds/deadlines.ts'
import {
  type RefundDraft,
  type RefundRow,
  type RefundStatus,
  startDraft,
} from '../../../src/refunds/lifecycle.ts'
import {
  applyFailureNotification,
  applySuccessNotification,
} from '../../../src/refunds/notifications.ts'
import { makeRefundRow, QUIET, REFUND_SETTINGS } from '../../support/refund-row.ts'

const at = (status: RefundStatus, facts: Partial<RefundRow> = {}) =>
  startDraft(makeRefundRow({ status, ...facts }))
const SUCCESS = { id: 7, code: '0', receivedAt: '2026-01-02', beforeSnapshot: true }
const {
  REFUND_CONFIRM_FAILED_MS: CONFIRM,
  REFUND_RESOLVE_FOR_MS: RESOLVE,
  REFUND_RESEND_AFTER_MS: RESEND,
  REFUND_RESEND_FOR_MS: RESEND_FOR,
} = REFUND_SETTINGS
/** An answer showed no growth, long enough ago. */
const SHOWN = { noGrowthSince: '2026-01-01', sinceNoGrowthMs: CONFIRM }
/** Refused with a final code, by the answer to the only attempt, long enough ago. */
const REFUSED = {
  unanswered: false,
  refusedCode: '33',
  sinceRefusedMs: CONFIRM,
  refusedBeforeSnapshot: true,
  ...SHOWN,
}
const judge = (draft: RefundDraft, snapshot: typeof QUIET | undefined, mayHaveMoved?: string) =>
  applyDeadlines(draft, { mayHaveMoved, snapshot }, REFUND_SETTINGS)
/** Clerks read causes: they know no settings. */
const SETTING = /[A-Z]+_[A-Z]+/

const end = (facts: Partial<RefundRow>, view: typeof QUIET | undefined = QUIET) => {
  const draft = at(facts.status ?? 'unknown', facts)
  const disagreement = judge(draft, view)
  return {
    status: draft.now.status,
    kind: disagreement?.kind,
    now: draft.now,
    transitions: draft.transitions,
  }
}

describe('a notification of success', () => {
  it.each(['pending', 'sending', 'accepted', 'unknown', 'needs_review'] as const)(
    'makes a refund that is %s succeed',
    (status) => {
      const draft = at(status, { failureSource: 'gateway', failureReason: '33' })
      expect(applySuccessNotification(draft, SUCCESS)).toBeUndefined()
      expect(draft.now).toMatchObject({
        status: 'succeeded',
        failureSource: null,
        successNotifiedAt: '2026-01-02',
      })
      expect(draft.transitions).toMatchObject([
        { from: status, to: 'succeeded', cause: { ipnEventId: 7 } },
      ])
    },
  )

  const byPerson = { failureSource: 'service', failureReason: 'resolved' } as const
  const ENDED_WELL = { status: 'succeeded', failureSource: null }
  const CONTRADICTED = { status: 'needs_review', review: 'contradicted' }

  it.each([
    ['by the gateway', { failureSource: 'gateway' as const }, ENDED_WELL],
    ['by a person', byPerson, ENDED_WELL],
    ['by a person, after its notification', { ...byPerson, failureCode: '1' }, CONTRADICTED],
  ])('of one that failed %s is a disagreement', (_, facts, now) => {
    const draft = at('failed', facts)
    expect(applySuccessNotification(draft, SUCCESS)).toMatchObject({
      kind: 'success_after_failure',
    })
    expect(draft.now).toMatchObject(now)
  })

  it.each(['accepted', 'unknown', 'needs_review', 'failed'] as const)(
    'sends a refund to review that is %s and whose failure was notified',
    (status) => {
      const draft = at(status, { failureSource: 'gateway', failureCode: '1' })
      applySuccessNotification(draft, SUCCESS)
      expect(draft.now).toMatchObject({ status: 'needs_review', review: 'contradicted' })
      expect(draft.notes).toMatchObject([{ code: '0', ipnEventId: 7 }])
    },
  )

  it.each([null, '1'])(
    'repeated after a person has decided against it changes nothing (failure %s)',
    (failureCode) => {
      const known = { failureCode, successNotifiedAt: '2026-01-01' }
      for (const status of ['succeeded', 'needs_review', 'failed'] as const) {
        const draft = at(status, known)
        expect(applySuccessNotification(draft, SUCCESS)).toBeUndefined()
        expect(draft.transitions).toEqual([])
        expect(draft.now.status).toBe(status)
      }
    },
  )

  it('of one that came back is kept, and is a disagreement', () => {
    const draft = at('returned', { inferred: false })
    expect(applySuccessNotification(draft, SUCCESS)).toMatchObject({
      kind: 'decided_against_evidence',
    })
    expect(draft.now).toMatchObject({ status: 'returned', successNotifiedAt: '2026-01-02' })
    expect(draft.notes).toMatchObject([{ code: '0', ipnEventId: 7 }])
  })

  it('once more, of one that came back since, is kept, and is a disagreement of its own', () => {
    const draft = at('returned', { successNotifiedAt: '2026-01-01' })
    expect(applySuccessNotification(draft, SUCCESS)).toMatchObject({
      kind: 'decided_against_evidence',
      theirs: 'success notification, id 7',
    })
    expect(draft.now).toMatchObject({ status: 'returned', successNotifiedAt: '2026-01-01' })
    expect(draft.notes).toMatchObject([{ code: '0', ipnEventId: 7 }])
  })

  it('confirms an inferred success, without a transition, and leaves a trace', () => {
    const draft = at('succeeded', { inferred: true })
    expect(applySuccessNotification(draft, SUCCESS)).toBeUndefined()
    expect(draft.now).toMatchObject({ inferred: false, matched: false })
    expect(draft.transitions).toEqual([])
    expect(draft.notes).toMatchObject([{ code: '0', ipnEventId: 7 }])
  })
})

describe('a notification of failure', () => {
  const FAILURE = { id: 7, code: '1', receivedAt: '2026-01-02', beforeSnapshot: true }

  it.each(['accepted', 'unknown'] as const)('leaves a refund that is %s unchanged', (status) => {
    const draft = at(status)
    expect(applyFailureNotification(draft, FAILURE)).toBeUndefined()
    expect(draft.now).toMatchObject({ status, failureCode: '1', failureBeforeSnapshot: true })
  })

  it('after success sends the refund to review, unmatched, and is a disagreement', () => {
    const draft = at('succeeded', { matched: true })
    expect(applyFailureNotification(draft, FAILURE)).toMatchObject({
      kind: 'failure_after_success',
    })
    expect(draft.now).toMatchObject({ status: 'needs_review', matched: false })
  })

  it('of a failed refund is kept, and changes nothing else', () => {
    const draft = at('failed', { failureSource: 'gateway' })
    expect(applyFailureNotification(draft, FAILURE)).toBeUndefined()
    expect(draft.now).toMatchObject({ status: 'failed', failureCode: '1' })
    expect(draft.notes).toMatchObject([{ code: '1', ipnEventId: 7 }])
  })

  it('in review is kept on the refund, and nothing is inferred any more', () => {
    const draft = at('needs_review', { review: 'no_evidence' })
    expect(applyFailureNotification(draft, FAILURE)).toBeUndefined()
    expect(draft.now).toMatchObject({ failureCode: '1', review: 'contradicted' })
    expect(draft.transitions).toEqual([])
    expect(draft.notes).toMatchObject([{ code: '1', ipnEventId: 7 }])
  })

  it.each([
    ['that was not sent from here', 'pending' as const, { attempts: 0 }],
    ['sent twice and accepted', 'accepted' as const, { attempts: 2 }],
    ['sent twice and unknown', 'unknown' as const, { attempts: 2 }],
    ['of which another failure was notified', 'accepted' as const, { failureCode: '2' }],
    ['whose success was notified', 'failed' as const, { successNotifiedAt: '2026-01-01' }],
  ])('sends a refund to review %s', (_, status, facts) => {
    const draft = at(status, facts)
    applyFailureNotification(draft, FAILURE)
    expect(draft.now).toMatchObject({ status: 'needs_review', review: 'contradicted' })
  })

  it('repeated after a person has decided changes nothing', () => {
    const draft = at('succeeded', { failureCode: '1', matched: true })
    expect(applyFailureNotification(draft, FAILURE)).toBeUndefined()
    expect(draft.now).toMatchObject({ status: 'succeeded', matched: true })
  })

  it('of one that came back is kept, and is a disagreement', () => {
    const draft = at('returned')
    expect(applyFailureNotification(draft, FAILURE)).toMatchObject({
      kind: 'decided_against_evidence',
    })
    expect(draft.now).toMatchObject({ status: 'returned', failureCode: '1' })
  })

  it('once more, of one that came back since, is kept, and is a disagreement of its own', () => {
    const draft = at('returned', { failureCode: '1' })
    expect(applyFailureNotification(draft, FAILURE)).toMatchObject({
      kind: 'decided_against_evidence',
      theirs: 'failure notification, code 1, id 7',
    })
    expect(draft.notes).toMatchObject([{ code: '1', ipnEventId: 7 }])
  })

  it('starts the wait for answers without growth anew', () => {
    const draft = at('unknown', SHOWN)
    applyFailureNotification(draft, FAILURE)
    expect(draft.now.noGrowthSince).toBeNull()
  })

  const notified = {
    failureCode: '1',
    refundedBefore: '0',
    failureBeforeSnapshot: true,
    sinceFailureNotifiedMs: CONFIRM,
    ...SHOWN,
  }

  it.each(['accepted', 'unknown'] as const)(
    'fails a refund that is %s once two answers, apart, show no growth',
    (status) => {
      const facts = { ...notified, status }
      expect(end(facts)).toMatchObject({
        status: 'failed',
        now: { failureSource: 'gateway', failureReason: '1' },
      })
      expect(end(facts, { ...QUIET, refundedNow: '29' }).status).toBe('failed')
      expect(judge(at(status, facts), undefined)).toBeUndefined()
    },
  )

  it.each([
    ['the answer was asked for before it', { failureBeforeSnapshot: false, noGrowthSince: null }],
    ['only one answer shows no growth', { noGrowthSince: null }],
    ['the two answers are not far enough apart', { sinceNoGrowthMs: CONFIRM - 1 }],
    ['it was notified too recently', { sinceFailureNotifiedMs: CONFIRM - 1 }],
  ])('fails nothing while %s', (_, facts) => {
    expect(end({ ...notified, ...facts }).status).toBe('unknown')
  })

  it('fails nothing beside growth of its amount, or a stale answer, which start the wait anew', () => {
    for (const view of [{ refundedNow: '40' }, { unmatchedDelta: '-30' }]) {
      const { status, now } = end(notified, { ...QUIET, ...view })
      expect([status, now.noGrowthSince]).toEqual(['unknown', null])
    }
  })

  it('sends a refund to review of which another attempt is recorded again since', () => {
    const sentTwice = at('accepted', { ...notified, attempts: 2 })
    judge(sentTwice, undefined)
    expect(sentTwice.now).toMatchObject({ status: 'needs_review', review: 'contradicted' })
  })

  it.each(['24', '5', '-2'])(
    'with a code that is not known to be final, like %s, never fails it, but goes to review',
    (failureCode) => {
      const facts = { ...notified, failureCode }
      expect(end({ ...facts, sinceFailureNotifiedMs: CONFIRM - 1 }).status).toBe('unknown')
      expect(end(facts).status).toBe('needs_review')
      const unanswered = at('accepted', facts)
      judge(unanswered, undefined)
      expect(unanswered.now.status).toBe('needs_review')
      expect(JSON.stringify(unanswered.transitions)).not.toMatch(SETTING)
    },
  )
})

it('a refund that was never sent needs a person instead while it may have moved all the same', () => {
  const sinceRequestedMs = REFUND_SETTINGS.REFUND_SEND_WITHIN_MS
  const draft = at('pending', { attempts: 0, firstSentAt: null, sinceRequestedMs })
  judge(draft, undefined, 'growth may be its own')
  const { now, transitions } = draft
  expect(now).toMatchObject({ status: 'needs_review', review: 'contradicted' })
  expect(transitions[0]?.cause.reason).toMatch(/, but growth may be its own$/)
})

describe('a non-zero code', () => {
  it('to the first and only attempt fails the refund after the window, with a later query', () => {
    expect(end(REFUSED)).toMatchObject({
      status: 'failed',
      now: { failureSource: 'gateway', failureReason: '33' },
    })
  })

  it.each([
    ['the window is not over', { sinceRefusedMs: CONFIRM - 1 }],
    ['no answer before has shown no growth', { noGrowthSince: null }],
    ['the two answers are not far enough apart', { sinceNoGrowthMs: CONFIRM - 1 }],
    ['it was a second attempt', { attempts: 2 }],
    ['an attempt ended without an answer', { unanswered: true }],
    ['the code is 9', { refusedCode: '9' }],
    ['the code is 99', { refusedCode: '99' }],
    ['the gateway has accepted it since', { status: 'accepted' as const }],
  ])('proves nothing when %s', (_, facts: Partial<RefundRow>) => {
    const { status } = end({ ...REFUSED, ...facts })
    expect(status).toBe(facts.status ?? 'unknown')
  })

  it('proves nothing beside growth since it was sent that could be its own, whoever explains it', () => {
    const grown = (refundedNow: string) =>
      end({ ...REFUSED, refundedBefore: '10' }, { ...QUIET, refundedNow }).status
    // Less than then hides whose growth the next one shows.
    const seen = ['39', '40', '9'].map(grown)
    expect(seen).toEqual(['failed', 'unknown', 'needs_review'])
  })

  it('proves nothing beside growth since the payment was first seen, if nothing is known of the attempt', () => {
    const grown = (refundedNow: string) =>
      end({ ...REFUSED, refundedBefore: null }, { ...QUIET, refundedNow, refundedAtFirst: '5' })
    expect([grown('34').status, grown('35').status]).toEqual(['failed', 'unknown'])
  })

  it('proves nothing beside an answer that is stale', () => {
    expect(end(REFUSED, { ...QUIET, unmatchedDelta: '-30' }).status).toBe('unknown')
  })

  it.each(['1', '24', '215', '35'])(
    'that is not known to be final, like %s, sends the refund to review',
    (refusedCode) => {
      const ended = end({ ...REFUSED, refusedCode })
      expect(ended).toMatchObject({ status: 'needs_review', now: { review: 'no_evidence' } })
      expect(JSON.stringify(ended.transitions)).not.toMatch(SETTING)
    },
  )

  it('proves nothing without a query', () => {
    const draft = at('unknown', REFUSED)
    judge(draft, undefined)
    expect(draft.now.status).toBe('unknown')
  })
})

describe('time', () => {
  it('sends an unknown refund to review, even while the gateway does not answer', () => {
    const draft = at('unknown', { sinceSentMs: RESOLVE })
    expect(judge(draft, undefined)).toBeUndefined()
    expect(draft.now.status).toBe('needs_review')
    expect(end({ sinceSentMs: RESOLVE - 1 }).status).toBe('unknown')
  })

  it.each(['9', '99'])('sends a refund refused with code %s to review', (code) => {
    expect(end({ ...REFUSED, refusedCode: code, sinceSentMs: RESOLVE }).status).toBe('needs_review')
  })

  it('reports an accepted refund that does not end, and does not change it', () => {
    const accepted = { status: 'accepted' as const, unanswered: false, sinceSentMs: RESOLVE }
    expect(end(accepted)).toMatchObject({ status: 'accepted', kind: 'refund_without_end' })
    expect(end({ ...accepted, sinceSentMs: RESOLVE - 1 }).kind).toBeUndefined()
  })

  it('sends a refund to review whose notified failure is contradicted by a delta for too long', () => {
    const torn = { failureCode: '1', failureBeforeSnapshot: true, sinceSentMs: RESOLVE }
    const grown = { ...QUIET, refundedNow: '30' }
    expect(end({ ...torn, status: 'accepted' }, grown).status).toBe('needs_review')
    expect(end({ ...torn, status: 'unknown' }, grown).status).toBe('needs_review')
  })
})

describe('a resend under the same id', () => {
  const unanswered = { sinceSentMs: RESEND, sinceFirstSentMs: RESEND }
  const may = (facts: Partial<RefundRow>, settings = {}) =>
    mayResend(makeRefundRow({ ...unanswered, ...facts }), { ...REFUND_SETTINGS, ...settings })

  it('is allowed some time after an attempt without an answer', () => {
    expect(may({})).toBe(true)
    expect(may({}, { REFUNDS_ENABLED: false })).toBe(true)
  })

  it.each([
    ['too early', { sinceSentMs: RESEND - 1 }],
    ['after a code, which was an answer', { unanswered: false, refusedCode: '33' }],
    ['once it was accepted', { status: 'accepted' as const }],
    ['under review', { status: 'needs_review' as const }],
    ['once it succeeded', { status: 'succeeded' as const }],
    ['after its failure was notified', { failureCode: '1' }],
    ['beyond REFUND_RESEND_FOR_MS', { sinceFirstSentMs: RESEND_FOR }],
  ])('is not allowed %s', (_, facts) => {
    expect(may(facts)).toBe(false)
  })

  it('waits twice as long as the one before', () => {
    const seen = [4 * RESEND - 1, 4 * RESEND].map((sinceSentMs) =>
      may({ attempts: 3, sinceSentMs }),
    )
    expect(seen).toEqual([false, true])
  })

  it('is never allowed where the gateway does not refuse repeated ids', () => {
    expect(may({}, { GATEWAY_REFUND_DEDUPES: false })).toBe(false)
  })
})

describe('the next check', () => {
  const look = (facts: Partial<RefundRow>) =>
    scheduleNextCheck(at(facts.status ?? 'unknown', facts), REFUND_SETTINGS)

  it('comes at doubling intervals, up to a limit', () => {
    const polls = [1, 2, 3, 30].map((n) => look({ status: 'accepted', polls: n }))
    expect(polls).toEqual([2_001, 4_001, 8_001, 900_001])
  })

  it.each([
    ['a resend is allowed', {}, RESEND],
    [
      'a refusal is confirmed',
      { unanswered: false, refusedCode: '33', sinceRefusedMs: 0 },
      CONFIRM,
    ],
    ['a person has to decide', { sinceSentMs: RESOLVE - 10_000 }, 10_000],
  ])('is not missed when %s', (_, facts, ms) => {
    expect(look({ polls: 30, ...facts })).toBe(ms + 1)
  })
})
