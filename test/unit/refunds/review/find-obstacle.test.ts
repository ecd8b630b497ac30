import { describe, expect, it } from 'vitest'
import type { StoredResolution } from '../../../../src/db/schema.ts'
import {
  type Circumstances,
  findObstacle,
  OUTCOMES,
  UNHINDERED,
} from '../../../../src/decisions/obstacles.ts'
import { findContraryEvidence } from '../../../../src/decisions/outcomes.ts'
import type { RefundRow } from '../../../../src/refunds/lifecycle.ts'
import { makeRefundRow, REFUND_SETTINGS } from '../../../support/refund-row.ts'

const decidedAs = (outcome: string): { resolution: StoredResolution } => ({
  resolution: { outcome, reason: 'asked', by: 'anh', againstEvidence: null, decidedAt: '2026' },
})
const byCode = { failureSource: 'gateway', failureReason: '33' } as const
const byPerson = { failureSource: 'service', failureReason: 'resolved' } as const

/** Every state in which a refund has ended after its bytes may have left. */
const ENDED: Record<string, Partial<RefundRow>> = {
  'succeeded, notified': { status: 'succeeded' },
  'succeeded, notified and matched': { status: 'succeeded', matched: true },
  'succeeded, in the first sight': { status: 'succeeded', inFirstSight: true },
  'succeeded, inferred': { status: 'succeeded', inferred: true },
  'succeeded, unsent': { status: 'succeeded', firstSentAt: null, attempts: 0 },
  'succeeded, by a person': { status: 'succeeded', ...decidedAs('succeeded') },
  'failed, by code': { status: 'failed', ...byCode },
  'failed, by a person': { status: 'failed', ...byPerson, ...decidedAs('failed') },
  'failed, by a person, sent by a lost row': {
    ...{ status: 'failed', ...byPerson, ...decidedAs('failed'), firstSentAt: null, attempts: 0 },
  },
  returned: { status: 'returned', ...decidedAs('returned') },
  'returned, matched': { status: 'returned', matched: true, ...decidedAs('returned') },
  'returned, shown once': { status: 'returned', returnSightings: 1, ...decidedAs('returned') },
  'returned and released': { status: 'returned', returnSightings: 2, ...decidedAs('returned') },
}

const SETTINGS = { ...REFUND_SETTINGS, REFUND_APPROVAL_WITHIN_MS: 1_000 }

/** The outcomes that this one may decide. */
function listOffers(facts: Partial<RefundRow>, decider: Partial<Circumstances> = {}) {
  const beside = { ...UNHINDERED, ...decider }
  const row = makeRefundRow(facts)
  return OUTCOMES.filter((one) => !findObstacle(row, one, SETTINGS, beside))
}

const WAITED = { sinceResolvedMs: REFUND_SETTINGS.REFUND_CONFIRM_FAILED_MS }

describe('a refund that has ended', () => {
  it.each(Object.keys(ENDED))('%s: somebody can decide it otherwise', (state) => {
    const facts = ENDED[state] ?? {}
    const others = OUTCOMES.filter((one) => one !== facts.status)
    expect(listOffers(facts)).toEqual(expect.arrayContaining(others))
  })

  it.each(Object.keys(ENDED))('%s: the only one who may decides after the wait', (state) => {
    const facts = { ...ENDED[state], ...WAITED }
    expect(listOffers(facts, { decidedLast: true, alone: true })).toEqual(listOffers(facts))
  })

  it.each([
    ['succeeded, by a person', ['returned']],
    ['failed, by a person', ['succeeded']],
    ['returned', []],
    ['returned and released', []],
  ])('%s: whoever decided it last is left with %j', (state, offered) => {
    const facts = ENDED[state] ?? {}
    for (const alone of [false, true]) {
      const early = { ...facts, sinceResolvedMs: WAITED.sinceResolvedMs - 1 }
      expect(listOffers(early, { decidedLast: true, alone })).toEqual(offered)
    }
  })

  it('unsent is not decided: it is requested again', () => {
    const facts = { status: 'failed', firstSentAt: null, attempts: 0 } as const
    expect(listOffers(facts)).toEqual([])
    const row = makeRefundRow(facts)
    const why = findObstacle(row, 'succeeded', SETTINGS, UNHINDERED)
    expect(why).toEqual({ why: 'failed_unsent' })
  })
})

const GROWN = { refundedNow: '30', refundedAtFirst: '0', unmatchedDelta: '30', unhandled: [] }
const find = (facts: Partial<RefundRow>, outcome: (typeof OUTCOMES)[number], now = GROWN) =>
  findContraryEvidence(makeRefundRow(facts), outcome, now)

describe('the growth that a success was inferred from', () => {
  const inferred = { status: 'succeeded', inferred: true, refundedBefore: '0' } as const

  it('speaks against its failure', () => {
    expect(find(inferred, 'failed')).toEqual([expect.stringContaining('grew to 30')])
  })

  it('does not once it is another refund’s, or gone', () => {
    expect(find(inferred, 'failed', { ...GROWN, unmatchedDelta: '0' })).toEqual([])
    expect(find(inferred, 'failed', { ...GROWN, refundedNow: '20', unmatchedDelta: '20' })).toEqual(
      [],
    )
  })

  it('does not speak against its success, nor against its return', () => {
    expect(find(inferred, 'succeeded')).toEqual([])
    expect(find(inferred, 'returned')).toEqual([])
  })
})
