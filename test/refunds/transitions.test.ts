import { describe, expect, it } from 'vitest'
import {
  applyDeadlines,
  applyFailureNotification,
  applySuccessNotification,
  mayResend,
  scheduleNextCheck,
  startDraft,
} from '../../src/refunds/transitions.ts'
import type { RefundRow, RefundStatus } from '../../src/refunds/types.ts'
import { makeRefundRow, REFUND_SETTINGS } from '../support/refund-row.ts'

const at = (status: RefundStatus, facts: Partial<RefundRow> = {}) =>
  startDraft(makeRefundRow({ status, ...facts }))
const QUIET = { callId: 1, unmatchedDelta: '0', refundedNow: '0', inferred: '0' }
const {
  REFUND_CONFIRM_FAILED_MS: CONFIRM,
  REFUND_RESOLVE_FOR_MS: RESOLVE,
  REFUND_RESEND_AFTER_MS: RESEND,
} = REFUND_SETTINGS
/** Refused with a final code, by the answer to the only attempt, long enough ago. */
const REFUSED = {
  unanswered: false,
  refusedCode: '33',
  sinceRefusedMs: CONFIRM,
  refusedToSnapshotMs: CONFIRM,
}
const end = (facts: Partial<RefundRow>, view: typeof QUIET | undefined = QUIET) => {
  const draft = at(facts.status ?? 'unknown', facts)
  const disagreement = applyDeadlines(draft, view, REFUND_SETTINGS)
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
      const draft = at(status, { failureSource: 'gateway', failureReason: '33', failureCode: '1' })
      expect(applySuccessNotification(draft, 7)).toBeUndefined()
      expect(draft.now).toMatchObject({
        status: 'succeeded',
        known: true,
        failureSource: null,
        failureCode: null,
      })
      expect(draft.transitions).toMatchObject([
        { from: status, to: 'succeeded', cause: { ipnEventId: 7 } },
      ])
    },
  )

  it('makes a failed refund succeed, and is a disagreement', () => {
    const draft = at('failed', { failureSource: 'gateway' })
    expect(applySuccessNotification(draft, 7)).toMatchObject({ kind: 'success_after_failure' })
    expect(draft.now).toMatchObject({ status: 'succeeded', known: true, failureSource: null })
  })

  it('confirms an inferred success, without a transition', () => {
    const draft = at('succeeded', { inferred: true, matched: true })
    expect(applySuccessNotification(draft, 7)).toBeUndefined()
    expect(draft.now).toMatchObject({ known: true, inferred: false, matched: true })
    expect(draft.transitions).toEqual([])
  })
})

describe('a notification of failure', () => {
  const FAILURE = { code: '1', at: '2026-01-02', beforeSnapshot: true }

  it.each(['accepted', 'unknown'] as const)('leaves a refund that is %s unchanged', (status) => {
    const draft = at(status)
    expect(applyFailureNotification(draft, 7, FAILURE)).toBeUndefined()
    expect(draft.now).toMatchObject({ status, failureCode: '1', failureBeforeSnapshot: true })
  })

  it('after success sends the refund to review, unmatched, and is a disagreement', () => {
    const draft = at('succeeded', { known: true, matched: true })
    expect(applyFailureNotification(draft, 7, FAILURE)).toMatchObject({
      kind: 'failure_after_success',
    })
    expect(draft.now).toMatchObject({ status: 'needs_review', known: false, matched: false })
  })

  it.each(['pending', 'sending', 'failed', 'needs_review'] as const)(
    'changes nothing on a refund that is %s',
    (status) => {
      const draft = at(status)
      expect(applyFailureNotification(draft, 7, FAILURE)).toBeUndefined()
      expect(draft.now).toBe(draft.before)
    },
  )

  it.each(['accepted', 'unknown'] as const)(
    'fails a refund that is %s once a query sent later shows no unmatched delta',
    (status) => {
      const notified = { status, failureCode: '1', failureBeforeSnapshot: true }
      expect(end(notified)).toMatchObject({
        status: 'failed',
        now: { failureSource: 'gateway', failureReason: '1' },
      })
      expect(end({ ...notified, failureBeforeSnapshot: false }).status).toBe(status)
      expect(end(notified, { ...QUIET, unmatchedDelta: '30' }).status).toBe(status)
      expect(end(notified, { ...QUIET, unmatchedDelta: '-30' }).status).toBe(status)
      expect(applyDeadlines(at(status, notified), undefined, REFUND_SETTINGS)).toBeUndefined()
    },
  )
})

describe('a non-zero code', () => {
  it('to the first and only attempt fails the refund after the window, with a later query', () => {
    expect(end(REFUSED)).toMatchObject({
      status: 'failed',
      now: { failureSource: 'gateway', failureReason: '33' },
    })
  })

  it.each([
    ['the window is not over', { refusedToSnapshotMs: CONFIRM - 1 }],
    ['the last query was sent before the window ended', { refusedToSnapshotMs: null }],
    ['it was a second attempt', { attempts: 2 }],
    ['an attempt ended without an answer', { unanswered: true }],
    ['the code is 9', { refusedCode: '9' }],
    ['the code is 99', { refusedCode: '99' }],
    ['the gateway has accepted it since', { status: 'accepted' as const }],
  ])('proves nothing when %s', (_, facts: Partial<RefundRow>) => {
    const { status } = end({ ...REFUSED, ...facts })
    expect(status).toBe(facts.status ?? 'unknown')
  })

  it('proves nothing beside a delta that another was inferred from and that could be its own', () => {
    expect(end(REFUSED, { ...QUIET, refundedNow: '30', inferred: '30' }).status).toBe('unknown')
    expect(end(REFUSED, { ...QUIET, refundedNow: '29', inferred: '29' }).status).toBe('failed')
  })

  it.each(['30', '-30'])('proves nothing beside an unmatched delta of %s', (grown) => {
    expect(end(REFUSED, { ...QUIET, unmatchedDelta: grown }).status).toBe('unknown')
  })

  it('proves nothing without a query', () => {
    const draft = at('unknown', REFUSED)
    applyDeadlines(draft, undefined, REFUND_SETTINGS)
    expect(draft.now.status).toBe('unknown')
  })
})

describe('time', () => {
  it('sends an unknown refund to review, even while the gateway does not answer', () => {
    const draft = at('unknown', { sinceSentMs: RESOLVE })
    expect(applyDeadlines(draft, undefined, REFUND_SETTINGS)).toBeUndefined()
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
    const grown = { ...QUIET, unmatchedDelta: '30' }
    expect(end({ ...torn, status: 'accepted' }, grown).status).toBe('needs_review')
    expect(end({ ...torn, status: 'unknown' }, grown).status).toBe('needs_review')
  })

  it.each(['pending', 'sending', 'succeeded', 'failed', 'needs_review'] as const)(
    'does not change a refund that is %s',
    (status) => {
      const facts = { ...REFUSED, status, sinceSentMs: 2 * RESOLVE, failureCode: '1' }
      expect(end({ ...facts, failureBeforeSnapshot: true }).transitions).toEqual([])
    },
  )
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
    ['beyond REFUND_RESOLVE_FOR_MS', { sinceFirstSentMs: RESOLVE }],
  ])('is not allowed %s', (_, facts) => {
    expect(may(facts)).toBe(false)
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
