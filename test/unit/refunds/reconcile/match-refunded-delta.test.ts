import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type DeltaMatch,
  matchRefundedDelta,
  type OwnRefund,
  type RefundedDelta,
} from '../../../../src/refunds/growth.ts'
import type { ExternalRefund } from '../../../../src/refunds/types.ts'

const own = (id: string, amount: string, facts: Partial<OwnRefund> = {}): OwnRefund => ({
  id,
  amount,
  evidence: 'open',
  matched: false,
  sentBefore: true,
  hasGrown: true,
  mayHaveGrown: true,
  notifiedBeforeFirst: false,
  decidedGrowth: null,
  ...facts,
})
const confirmed = (id: string, amount: string, facts: Partial<OwnRefund> = {}) =>
  own(id, amount, { evidence: 'confirmed', ...facts })
const inferredBefore = (id: string, amount: string) => own(id, amount, { evidence: 'inferred' })
const external = (
  id: string,
  amount: string,
  facts: Partial<ExternalRefund> = {},
): ExternalRefund => ({
  id,
  amount,
  matched: false,
  contradicted: false,
  isOtherReading: false,
  notifiedBeforeFirst: false,
  ...facts,
})
/** One that was notified before the payment was first seen. */
const early = (id: string, amount: string): ExternalRefund => ({
  ...external(id, amount),
  notifiedBeforeFirst: true,
})
const FACTS = { released: [], atFirst: '0', explainedAtFirst: '0', externalChanged: false }
const grow = (now: string, facts: Partial<RefundedDelta> = {}) =>
  matchRefundedDelta({ ...FACTS, now, own: [], external: [], ...facts })
const NOTHING: DeltaMatch = {
  matchedOwn: [],
  matchedExternal: [],
  firstSightOwn: [],
  firstSightExternal: [],
  inferred: undefined,
  doubtful: [],
  contradicted: [],
  unmatchedDelta: '0',
}

/** What growth shows: nothing but what is given. */
const see = (now: string, facts: Partial<RefundedDelta>, shown: Partial<DeltaMatch> = {}) =>
  expect(grow(now, facts)).toEqual({ ...NOTHING, ...shown })

describe('a delta that a refund was inferred from', () => {
  const inferred = inferredBefore('a', '30')

  it('stays unmatched, whatever is inferred from it', () => {
    see('30', { own: [inferred] }, { unmatchedDelta: '30' })
  })

  it('goes to a known refund, and leaves the other to a person', () => {
    see('30', { own: [inferred, confirmed('b', '30')] }, { matchedOwn: ['b'], doubtful: ['a'] })
  })

  it('stays where it is if the known one is larger, or leaves enough', () => {
    const list = { own: [inferred, confirmed('b', '40')] }
    see('30', list, { unmatchedDelta: '30' })
    see('70', list, { matchedOwn: ['b'], unmatchedDelta: '30' })
  })
})

describe('a delta', () => {
  it('from before the payment was first seen is not matched', () => {
    see('30', { atFirst: '30', own: [own('a', '30')] })
  })

  it('proves the only open refund of its amount, and stays unmatched', () => {
    const shown = { inferred: 'a', unmatchedDelta: '30' }
    see('30', { own: [own('a', '30.00')] }, shown)
    see('30', { own: [own('a', '30'), own('b', '30', { evidence: 'unsent' })] }, shown)
  })

  it.each([
    ['less than the only open refund', '29', [own('a', '30')]],
    ['more than the only open refund', '31', [own('a', '30')]],
    ['one of two equal open refunds', '30', [own('a', '30'), own('b', '30')]],
    ['one of two different open refunds', '30', [own('a', '30'), own('b', '20')]],
    ['the sum of two open refunds', '0.3', [own('a', '0.1'), own('b', '0.2')]],
    ['an open refund beside an inferred one', '50', [inferredBefore('a', '30'), own('b', '50')]],
    ['a refund that grew nothing since it was sent', '30', [own('a', '30', { hasGrown: false })]],
    [
      'one beside one under review',
      '30',
      [own('a', '30'), own('b', '9', { evidence: 'contradicted' })],
    ],
    [
      'one beside one that failed after bytes left',
      '30',
      [own('a', '30'), own('b', '9', { evidence: 'failed' })],
    ],
  ])('of %s proves no refund and stays unmatched', (_, now, list) => {
    see(now, { own: list }, { unmatchedDelta: now })
  })

  it('proves no refund while an external one is not matched', () => {
    const facts = { own: [own('a', '30')], external: [external('f', '40')] }
    see('30', facts, { unmatchedDelta: '30' })
  })

  it('is matched to confirmed refunds even while one is under review', () => {
    const list = [confirmed('a', '30'), own('b', '9', { evidence: 'contradicted' })]
    see('30', { own: list }, { matchedOwn: ['a'] })
  })

  it('seen by a query sent before the refund proves and matches nothing', () => {
    const late = { sentBefore: false }
    expect(grow('30', { own: [own('a', '30', late)] }).unmatchedDelta).toBe('30')
    expect(grow('30', { own: [confirmed('a', '30', late)] }).unmatchedDelta).toBe('30')
    expect(grow('30', { own: [own('a', '30'), own('b', '10', late)] }).inferred).toBeUndefined()
  })

  it('is matched to confirmed refunds before open ones, ours before external ones', () => {
    const all = { own: [own('a', '30'), confirmed('b', '30')], external: [external('f', '30')] }
    see('30', all, { matchedOwn: ['b'] })
    see('60', all, { matchedOwn: ['b'], matchedExternal: all.external })
    expect(grow('90', all).inferred).toBe('a')
  })

  it('is matched to the oldest refund first, and to a newer one when only that fits as a whole', () => {
    const list = [confirmed('old', '30'), confirmed('young', '20')]
    expect(grow('30', { own: list }).matchedOwn).toEqual(['old'])
    see('25', { own: list }, { matchedOwn: ['young'], unmatchedDelta: '5' })
  })

  it('proves no refund beside one whose failure was notified: it is open as well', () => {
    const list = [own('a', '30', { evidence: 'failure_notified' }), own('b', '30')]
    see('30', { own: list }, { unmatchedDelta: '30' })
    see('60', { own: list }, { unmatchedDelta: '60' })
  })

  it('that equals a refund that failed after bytes left sends it to review, and proves no other', () => {
    const list = [own('a', '30', { evidence: 'failed' }), own('b', '30')]
    const contradicted = { contradicted: ['a'], unmatchedDelta: '30' }
    see('30', { own: list.slice(0, 1) }, contradicted)
    see('30', { own: list }, contradicted)
    see('60', { own: list }, { unmatchedDelta: '60' })
  })

  it('that a person had before them when they decided is no news', () => {
    const decided = own('a', '30', { evidence: 'failed', decidedGrowth: '30' })
    expect(grow('30', { own: [decided] }).contradicted).toEqual([])
    const before = own('a', '30', { evidence: 'failed', decidedGrowth: '20' })
    expect(grow('30', { own: [before] }).contradicted).toEqual(['a'])
  })

  it('that may be an external refund that does not count proves none of ours', () => {
    const list = { own: [own('a', '30')] }
    see('30', { ...list, released: ['30'] }, { unmatchedDelta: '30' })
    expect(grow('30', { ...list, released: ['40'] }).inferred).toBe('a')
  })

  it('is not matched to an external refund whose failure was notified as well, or to another reading', () => {
    for (const facts of [{ contradicted: true }, { isOtherReading: true }]) {
      const list = { own: [own('a', '30')], external: [external('f', '30', facts)] }
      see('30', list, { unmatchedDelta: '30' })
    }
  })

  it('that was matched once is not matched again', () => {
    const list = [confirmed('a', '30', { matched: true }), own('b', '30')]
    see('30', { own: list })
    see('30', { own: [own('b', '30')], external: [external('f', '30', { matched: true })] })
  })
})

describe('what was refunded at first sight', () => {
  const two = [early('f', '30'), early('g', '30')]

  it('is consumed by refunds notified before it, oldest first, whole only', () => {
    const seen = { atFirst: '30', external: two }
    see('30', seen, { firstSightExternal: two.slice(0, 1) })
    expect(grow('50', { ...seen, atFirst: '50' }).firstSightExternal).toEqual(two.slice(0, 1))
    expect(grow('60', { ...seen, atFirst: '60' }).firstSightExternal).toEqual(two)
    expect(grow('20', { ...seen, atFirst: '20' }).firstSightExternal).toEqual([])
    const rest = { ...seen, atFirst: '60', explainedAtFirst: '30' }
    see('60', rest, { firstSightExternal: two.slice(0, 1) })
  })

  it('is not consumed by one notified since', () => {
    see('30', { atFirst: '30', external: [external('f', '30')] })
  })

  it('is consumed by a refund of ours whose row was lost, before external ones', () => {
    const list = [confirmed('a', '30', { notifiedBeforeFirst: true })]
    see('30', { atFirst: '30', own: list, external: two }, { firstSightOwn: ['a'] })
  })

  it('leaves growth open that fits ours and an external one that may belong to it', () => {
    const late = external('f', '30')
    const torn = { atFirst: '30', own: [own('a', '30')], external: [late] }
    see('60', torn, { unmatchedDelta: '30' })
    expect(grow('60', { ...torn, own: [own('a', '30', { evidence: 'failed' })] })).toMatchObject({
      matchedExternal: [],
      unmatchedDelta: '30',
    })
    const unsent = own('a', '30', { evidence: 'unsent' })
    expect(grow('60', { ...torn, own: [unsent] })).toMatchObject({ matchedExternal: [] })
    see('60', { ...torn, own: [confirmed('a', '30')] }, { matchedOwn: ['a'] })
    expect(grow('60', { ...torn, own: [] }).matchedExternal).toEqual([late])
    expect(grow('50', { ...torn, own: [own('a', '20')] }).inferred).toBeUndefined()
  })
})

describe('what was inferred', () => {
  const list = [inferredBefore('a', '30')]

  it('gives way to an external refund, of whatever amount', () => {
    const found = [external('f', '30')]
    see('30', { own: list, external: found }, { matchedExternal: found, doubtful: ['a'] })
    for (const amount of ['20', '40']) {
      const appeared = { own: list, external: [external('f', amount)], externalChanged: true }
      expect(grow('30', appeared).doubtful).toEqual(['a'])
    }
  })

  it('stays if the delta shows it beside the external refund as well', () => {
    const found = [external('f', '30')]
    see('60', { own: list, external: found }, { matchedExternal: found, unmatchedDelta: '30' })
  })

  it('is not judged again while no external refund changes', () => {
    expect(grow('0', { own: list }).doubtful).toEqual([])
    expect(grow('30', { own: list, external: [external('f', '40')] }).doubtful).toEqual([])
  })

  it('is doubted, and not replaced, by an external refund that may belong to the first sight', () => {
    const late = { atFirst: '30', own: list, external: [external('f', '30')] }
    see('60', { ...late, externalChanged: true }, { doubtful: ['a'], unmatchedDelta: '30' })
  })

  it('leaves a confirmed refund matched when the refunded amount falls', () => {
    see('10', { own: [confirmed('a', '30', { matched: true })] }, { unmatchedDelta: '-20' })
  })
})

/** Tenths, so that errors of binary floating point show. */
const amount = fc.integer({ min: 1, max: 6 }).map((tenths) => (tenths / 10).toFixed(1))
const ownRefund = fc
  .record({
    amount,
    evidence: fc.constantFrom(
      'confirmed' as const,
      'open',
      'failure_notified',
      'inferred',
      'failed',
      'expired',
      'contradicted',
      'unsent',
    ),
    notifiedBeforeFirst: fc.boolean(),
    matched: fc.boolean(),
    sentBefore: fc.boolean(),
    hasGrown: fc.boolean(),
    mayHaveGrown: fc.boolean(),
    decidedGrowth: fc.constantFrom(null, '0.3'),
  })
  .map(
    ({ evidence, matched, ...rest }): Omit<OwnRefund, 'id'> => ({
      ...rest,
      evidence,
      matched: evidence === 'confirmed' && matched,
    }),
  )
const delta: fc.Arbitrary<RefundedDelta> = fc
  .record({
    atFirst: fc.constantFrom('0', '0.3', '0.5'),
    explainedAtFirst: fc.constantFrom('0', '0', '0.2'),
    externalChanged: fc.boolean(),
    released: fc.array(amount, { maxLength: 1 }),
    grown: fc.integer({ min: 0, max: 20 }),
    own: fc.array(ownRefund, { maxLength: 5 }),
    external: fc.array(
      fc.record({
        amount,
        matched: fc.boolean(),
        notifiedBeforeFirst: fc.boolean(),
        contradicted: fc.boolean(),
        isOtherReading: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
  })
  .map(({ grown, own: ours, external: others, ...rest }) => ({
    ...rest,
    now: (Number(rest.atFirst) + grown / 10).toFixed(1),
    own: ours.map((one, i) => ({ ...one, id: `o${i}` })),
    external: others.map((one, i) => ({ ...one, id: `f${i}` })),
  }))
const tenths = (text: string) => Math.round(Number(text) * 10)
const total = (list: readonly { amount: string }[]) =>
  list.reduce((sum, one) => sum + tenths(one.amount), 0)
const named = <T extends { id: string }>(list: readonly T[], ids: readonly string[]) =>
  list.filter(({ id }) => ids.includes(id))
const forAll = (holds: (g: RefundedDelta, a: DeltaMatch) => void) =>
  fc.assert(
    fc.property(delta, (g) => holds(g, matchRefundedDelta(g))),
    { numRuns: 1000 },
  )

/** The refunds as they are once the result is written. */
function applyMatch(g: RefundedDelta, a: DeltaMatch): RefundedDelta {
  const first = [...named(g.own, a.firstSightOwn), ...a.firstSightExternal]
  return {
    ...g,
    externalChanged: false,
    explainedAtFirst: ((tenths(g.explainedAtFirst) + total(first)) / 10).toFixed(1),
    own: g.own
      .filter(({ id }) => !a.firstSightOwn.includes(id))
      .map((one): OwnRefund => {
        if ([...a.doubtful, ...a.contradicted].includes(one.id)) {
          return { ...one, evidence: 'contradicted' }
        }
        if (a.inferred === one.id) return { ...one, evidence: 'inferred' }
        return a.matchedOwn.includes(one.id) ? { ...one, matched: true } : one
      }),
    external: g.external
      .filter((one) => !a.firstSightExternal.includes(one))
      .map((one) => ({ ...one, matched: one.matched || a.matchedExternal.includes(one) })),
  }
}

const firstSightLeft = (g: RefundedDelta) => tenths(g.atFirst) - tenths(g.explainedAtFirst)
describe('whatever happened', () => {
  it('every unit of the delta is counted once: as matched or as unmatched', () => {
    forAll((g, a) => {
      const after = applyMatch(g, a)
      const explained = [...after.own, ...after.external].filter(({ matched }) => matched)
      expect(total(explained) + tenths(a.unmatchedDelta)).toBe(tenths(g.now) - tenths(g.atFirst))
    })
  })

  it('no more is matched than the delta', () => {
    forAll((_, a) => {
      if ([...a.matchedOwn, ...a.matchedExternal].length > 0)
        expect(tenths(a.unmatchedDelta)).toBeGreaterThanOrEqual(0)
    })
  })

  it('only unmatched, confirmed refunds sent before the query are matched', () => {
    forAll((g, a) => {
      for (const one of named(g.own, a.matchedOwn))
        expect(one).toMatchObject({ matched: false, evidence: 'confirmed', sentBefore: true })
      const certain = { matched: false, contradicted: false, isOtherReading: false }
      for (const one of a.matchedExternal) expect(one).toMatchObject(certain)
      for (const one of named(g.own, a.doubtful))
        expect(one).toMatchObject({ matched: false, evidence: 'inferred' })
    })
  })

  it('inference frees nothing, and only takes the one refund that can have caused the whole delta', () => {
    forAll((g, a) => {
      if (a.inferred === undefined) return
      const after = applyMatch(g, a)
      const rivals = after.own.filter(
        (one) => !one.matched && !['confirmed', 'unsent'].includes(one.evidence),
      )
      expect(rivals.map(({ id }) => id)).toEqual([a.inferred])
      const [one] = rivals
      expect(one).toMatchObject({ sentBefore: true, hasGrown: true, matched: false })
      expect(tenths(a.unmatchedDelta)).toBe(tenths(one?.amount ?? ''))
      expect(after.external.every(({ matched }) => matched)).toBe(true)
    })
  })

  it('no confirmed refund that fits into the remainder is skipped', () => {
    forAll((g, a) => {
      const after = applyMatch(g, a)
      const rest = tenths(a.unmatchedDelta)
      for (const one of [
        ...after.own.filter(
          ({ evidence, sentBefore, mayHaveGrown }) =>
            evidence === 'confirmed' && sentBefore && mayHaveGrown,
        ),
        ...after.external.filter(
          (one) =>
            !one.contradicted &&
            !one.isOtherReading &&
            (one.notifiedBeforeFirst || tenths(one.amount) > firstSightLeft(after)),
        ),
      ]) {
        if (!one.matched) expect(tenths(one.amount)).toBeGreaterThan(rest)
      }
    })
  })

  it('the order of the open refunds changes nothing', () => {
    forAll((g, a) => {
      const open = g.own.filter(({ evidence }) => evidence === 'open').reverse()
      const rest = g.own.filter(({ evidence }) => evidence !== 'open')
      const turned = matchRefundedDelta({ ...g, own: [...open, ...rest] })
      expect(turned).toEqual(a)
    })
  })

  it('the same snapshot again changes nothing', () => {
    forAll((g, a) => {
      expect(matchRefundedDelta(applyMatch(g, a))).toEqual({
        ...NOTHING,
        unmatchedDelta: a.unmatchedDelta,
      })
    })
  })

  it('no more than the first sight is taken for it, and only what was notified before', () => {
    forAll((g, a) => {
      const taken = [...named(g.own, a.firstSightOwn), ...a.firstSightExternal]
      if (taken.length > 0) expect(total(taken)).toBeLessThanOrEqual(firstSightLeft(g))
      for (const one of taken)
        expect(one).toMatchObject({ matched: false, notifiedBeforeFirst: true })
    })
  })
})
