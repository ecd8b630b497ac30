import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type {
  DeltaMatch,
  OwnRefund,
  RefundedDelta,
} from '../../../src/refunds/reconcile/delta-types.ts'
import { matchRefundedDelta } from '../../../src/refunds/reconcile/match-refunded-delta.ts'
import type { ExternalRefund } from '../../../src/refunds/types.ts'

const own = (id: string, amount: string, facts: Partial<OwnRefund> = {}): OwnRefund => ({
  id,
  amount,
  evidence: 'none',
  matched: false,
  sentBefore: true,
  sentAmidGrowth: false,
  sent: true,
  notifiedBeforeFirst: false,
  ...facts,
})
const confirmed = (id: string, amount: string, facts: Partial<OwnRefund> = {}) =>
  own(id, amount, { evidence: 'confirmed', ...facts })
const inferredBefore = (id: string, amount: string) =>
  own(id, amount, { evidence: 'inferred', matched: true })
const external = (id: string, amount: string, matched = false): ExternalRefund => ({
  id,
  amount,
  matched,
  notifiedBeforeFirst: false,
  sinceSeenMs: 0,
})
/** One that was notified before the payment was first seen. */
const early = (id: string, amount: string): ExternalRefund => ({
  ...external(id, amount),
  notifiedBeforeFirst: true,
})
const FACTS = {
  released: [],
  atFirst: '0',
  explainedAtFirst: '0',
  fellBefore: false,
  returning: '0',
  underReview: false,
}
const grow = (now: string, facts: Partial<RefundedDelta> = {}) =>
  matchRefundedDelta({ ...FACTS, now, own: [], external: [], ...facts })
const NOTHING: DeltaMatch = {
  matchedOwn: [],
  matchedExternal: [],
  firstSightOwn: [],
  firstSightExternal: [],
  inferred: [],
  doubtful: [],
  contradicted: [],
  unmatchedDelta: '0',
  fell: false,
}

describe('a delta that a refund was inferred from', () => {
  const inferred = inferredBefore('a', '30')

  it('goes to one of ours that a row that is lost had sent, and leaves the other to a person', () => {
    const lost = confirmed('b', '30', { sent: false })
    expect(grow('30', { own: [inferred, lost] })).toEqual({
      ...NOTHING,
      matchedOwn: ['b'],
      doubtful: ['a'],
    })
  })

  it('stays where it is if the other was sent from here, or is larger', () => {
    expect(grow('30', { own: [inferred, confirmed('b', '30')] })).toEqual(NOTHING)
    const larger = confirmed('b', '40', { sent: false })
    expect(grow('30', { own: [inferred, larger] })).toEqual(NOTHING)
  })
})

describe('a delta', () => {
  it('from before the payment was first seen is not matched', () => {
    expect(grow('30', { atFirst: '30', own: [own('a', '30')] })).toEqual(NOTHING)
  })

  it('proves the only open refund of its amount', () => {
    expect(grow('30', { own: [own('a', '30.00')] })).toEqual({ ...NOTHING, inferred: ['a'] })
  })

  it('proves all open refunds when it equals their sum', () => {
    const both = [own('a', '0.1'), own('b', '0.2')]
    expect(grow('0.3', { own: both })).toEqual({ ...NOTHING, inferred: ['a', 'b'] })
  })

  it.each([
    ['less than the only open refund', '29', [own('a', '30')]],
    ['more than the only open refund', '31', [own('a', '30')]],
    ['one of two equal open refunds', '30', [own('a', '30'), own('b', '30')]],
    ['one of two different open refunds', '30', [own('a', '30'), own('b', '20')]],
  ])('of %s proves no refund and stays unmatched', (_, now, list) => {
    expect(grow(now, { own: list })).toEqual({ ...NOTHING, unmatchedDelta: now })
  })

  it('proves no refund by inference while one is under review', () => {
    const result = grow('30', { own: [own('a', '30')], underReview: true })
    expect(result).toEqual({ ...NOTHING, unmatchedDelta: '30' })
  })

  it('is matched to confirmed refunds even while one is under review', () => {
    const result = grow('30', { own: [confirmed('a', '30')], underReview: true })
    expect(result).toEqual({ ...NOTHING, matchedOwn: ['a'] })
  })

  it('seen by a query sent before the refund proves and matches nothing', () => {
    const late = { sentBefore: false }
    expect(grow('30', { own: [own('a', '30', late)] }).unmatchedDelta).toBe('30')
    expect(grow('30', { own: [confirmed('a', '30', late)] }).unmatchedDelta).toBe('30')
    expect(grow('30', { own: [own('a', '30'), own('b', '10', late)] }).inferred).toEqual([])
  })

  it('is matched to confirmed refunds before open ones, ours before external ones', () => {
    const list = [own('a', '30'), confirmed('b', '30')]
    expect(grow('30', { own: list, external: [external('f', '30')] })).toEqual({
      ...NOTHING,
      matchedOwn: ['b'],
    })
    expect(grow('60', { own: list, external: [external('f', '30')] })).toEqual({
      ...NOTHING,
      matchedOwn: ['b'],
      matchedExternal: [external('f', '30')],
    })
    expect(grow('90', { own: list, external: [external('f', '30')] }).inferred).toEqual(['a'])
  })

  it('is matched to the oldest refund first, and to a newer one when only that fits as a whole', () => {
    const list = [confirmed('old', '30'), confirmed('young', '20')]
    expect(grow('30', { own: list }).matchedOwn).toEqual(['old'])
    expect(grow('25', { own: list })).toEqual({
      ...NOTHING,
      matchedOwn: ['young'],
      unmatchedDelta: '5',
    })
  })

  it('proves no refund beside one whose failure was notified: it is open as well', () => {
    const list = [own('a', '30', { evidence: 'failure_notified' }), own('b', '30')]
    expect(grow('30', { own: list })).toEqual({ ...NOTHING, unmatchedDelta: '30' })
    expect(grow('60', { own: list })).toEqual({ ...NOTHING, unmatchedDelta: '60' })
  })

  it('that equals a refund failed by its code sends it to review, and proves no other', () => {
    const list = [own('a', '30', { evidence: 'refused' }), own('b', '30')]
    const contradicted = { ...NOTHING, contradicted: ['a'], unmatchedDelta: '30' }
    expect(grow('30', { own: list.slice(0, 1) })).toEqual(contradicted)
    expect(grow('30', { own: list })).toEqual(contradicted)
    expect(grow('60', { own: list })).toEqual({ ...NOTHING, unmatchedDelta: '60' })
  })

  it('that may be an external refund notified both as succeeded and as failed proves none of ours', () => {
    const list = { own: [own('a', '30')] }
    expect(grow('30', { ...list, released: ['30'] })).toEqual({ ...NOTHING, unmatchedDelta: '30' })
    expect(grow('30', { ...list, released: ['40'] }).inferred).toEqual(['a'])
  })

  it('that was matched once is not matched again', () => {
    const list = [confirmed('a', '30', { matched: true }), own('b', '30')]
    expect(grow('30', { own: list })).toEqual(NOTHING)
    expect(grow('30', { own: [own('b', '30')], external: [external('f', '30', true)] })).toEqual(
      NOTHING,
    )
  })
})

describe('what was refunded at first sight', () => {
  const two = [early('f', '30'), early('g', '30')]

  it('is consumed by refunds notified before it, oldest first, whole only', () => {
    const seen = { atFirst: '30', external: two }
    expect(grow('30', seen)).toEqual({ ...NOTHING, firstSightExternal: two.slice(0, 1) })
    expect(grow('50', { ...seen, atFirst: '50' }).firstSightExternal).toEqual(two.slice(0, 1))
    expect(grow('60', { ...seen, atFirst: '60' }).firstSightExternal).toEqual(two)
    expect(grow('20', { ...seen, atFirst: '20' }).firstSightExternal).toEqual([])
    expect(grow('60', { ...seen, atFirst: '60', explainedAtFirst: '30' })).toEqual({
      ...NOTHING,
      firstSightExternal: two.slice(0, 1),
    })
  })

  it('is not consumed by one notified since', () => {
    expect(grow('30', { atFirst: '30', external: [external('f', '30')] })).toEqual(NOTHING)
  })

  it('is consumed by a refund of ours whose row was lost, before external ones', () => {
    const list = [confirmed('a', '30', { notifiedBeforeFirst: true })]
    expect(grow('30', { atFirst: '30', own: list, external: two })).toEqual({
      ...NOTHING,
      firstSightOwn: ['a'],
    })
  })

  it('leaves growth open that fits ours and an external one that may belong to it', () => {
    const late = external('f', '30')
    const torn = { atFirst: '30', own: [own('a', '30')], external: [late] }
    expect(grow('60', torn)).toEqual({ ...NOTHING, unmatchedDelta: '30' })
    expect(grow('60', { ...torn, own: [own('a', '30', { evidence: 'refused' })] })).toMatchObject({
      matchedExternal: [],
      unmatchedDelta: '30',
    })
    const unsent = own('a', '30', { evidence: 'unsent' })
    expect(grow('60', { ...torn, own: [unsent] })).toMatchObject({ matchedExternal: [] })
    expect(grow('60', { ...torn, own: [confirmed('a', '30')] })).toEqual({
      ...NOTHING,
      matchedOwn: ['a'],
    })
    expect(grow('60', { ...torn, own: [] }).matchedExternal).toEqual([late])
    expect(grow('50', { ...torn, own: [own('a', '20')] }).inferred).toEqual(['a'])
  })
})

describe('what was inferred', () => {
  it('becomes doubtful, the newest first, when two answers show that the refunded amount fell', () => {
    const list = [inferredBefore('a', '30'), inferredBefore('b', '30')]
    const fell = { ...NOTHING, fell: true }
    expect(grow('30', { own: list })).toEqual({ ...fell, unmatchedDelta: '-30' })
    const again = { own: list, fellBefore: true }
    expect(grow('30', again)).toEqual({ ...fell, doubtful: ['b'] })
    expect(grow('0', again)).toEqual({ ...fell, doubtful: ['b', 'a'] })
  })

  it('gives way to an external refund that would have found its delta', () => {
    const list = [inferredBefore('a', '30')]
    expect(grow('30', { own: list, external: [external('f', '30')] })).toEqual({
      ...NOTHING,
      matchedExternal: [external('f', '30')],
      doubtful: ['a'],
    })
    expect(grow('60', { own: list, external: [external('f', '30')] }).doubtful).toEqual([])
    expect(grow('30', { own: list, external: [external('f', '40')] }).doubtful).toEqual([])
    const smaller = grow('30', { own: list, external: [external('f', '20')] })
    expect(smaller).toMatchObject({ doubtful: ['a'], unmatchedDelta: '10' })
  })

  it('is doubted, and not replaced, by an external refund that may belong to the first sight', () => {
    const late = {
      atFirst: '30',
      own: [inferredBefore('a', '30')],
      external: [external('f', '30')],
    }
    expect(grow('60', late)).toEqual({ ...NOTHING, doubtful: ['a'], unmatchedDelta: '30' })
  })

  it('stays when a confirmed refund does not show yet, which stays unmatched', () => {
    const list = [inferredBefore('a', '30'), confirmed('b', '30')]
    expect(grow('30', { own: list })).toEqual(NOTHING)
  })

  it('leaves a confirmed refund matched when the refunded amount falls', () => {
    expect(grow('10', { own: [confirmed('a', '30', { matched: true })] })).toEqual({
      ...NOTHING,
      unmatchedDelta: '-20',
      fell: true,
    })
  })
})

/** Tenths, so that errors of binary floating point show. */
const amount = fc.integer({ min: 1, max: 6 }).map((tenths) => (tenths / 10).toFixed(1))
const ownRefund = fc
  .record({
    amount,
    evidence: fc.constantFrom(
      'confirmed' as const,
      'none',
      'failure_notified',
      'inferred',
      'refused',
      'contradicted',
      'unsent',
    ),
    notifiedBeforeFirst: fc.boolean(),
    matched: fc.boolean(),
    sentBefore: fc.boolean(),
    sentAmidGrowth: fc.boolean(),
    sent: fc.boolean(),
  })
  .map(
    ({ evidence, matched, ...rest }): Omit<OwnRefund, 'id'> => ({
      ...rest,
      evidence,
      matched: evidence === 'inferred' || (evidence === 'confirmed' && matched),
    }),
  )
const delta: fc.Arbitrary<RefundedDelta> = fc
  .record({
    atFirst: fc.constantFrom('0', '0.3', '0.5'),
    explainedAtFirst: fc.constantFrom('0', '0', '0.2'),
    fellBefore: fc.boolean(),
    returning: fc.constant('0'),
    released: fc.array(amount, { maxLength: 1 }),
    grown: fc.integer({ min: 0, max: 20 }),
    own: fc.array(ownRefund, { maxLength: 5 }),
    external: fc.array(
      fc.record({
        amount,
        matched: fc.boolean(),
        notifiedBeforeFirst: fc.boolean(),
        sinceSeenMs: fc.constant(0),
      }),
      { maxLength: 3 },
    ),
    underReview: fc.boolean(),
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
    { numRuns: 3000 },
  )

/** The refunds as they are once the result is written. */
function applyMatch(g: RefundedDelta, a: DeltaMatch): RefundedDelta {
  const matched = [...a.matchedOwn, ...a.inferred]
  const first = [...named(g.own, a.firstSightOwn), ...a.firstSightExternal]
  return {
    ...g,
    explainedAtFirst: ((tenths(g.explainedAtFirst) + total(first)) / 10).toFixed(1),
    own: g.own
      .filter(({ id }) => !a.firstSightOwn.includes(id))
      .map((one): OwnRefund => {
        if ([...a.doubtful, ...a.contradicted].includes(one.id)) {
          return { ...one, matched: false, evidence: 'contradicted' }
        }
        if (!matched.includes(one.id)) return one
        const inferred = a.inferred.includes(one.id)
        return { ...one, matched: true, evidence: inferred ? 'inferred' : 'confirmed' }
      }),
    external: g.external
      .filter((one) => !a.firstSightExternal.includes(one))
      .map((one) => ({ ...one, matched: one.matched || a.matchedExternal.includes(one) })),
    underReview: g.underReview || a.doubtful.length + a.contradicted.length > 0,
  }
}

const firstSightLeft = (g: RefundedDelta) => tenths(g.atFirst) - tenths(g.explainedAtFirst)
const isOpen = (evidence: OwnRefund['evidence']) =>
  ['none', 'failure_notified', 'refused'].includes(evidence)

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
      if ([...a.matchedOwn, ...a.matchedExternal, ...a.inferred].length > 0)
        expect(tenths(a.unmatchedDelta)).toBeGreaterThanOrEqual(0)
    })
  })

  it('only unmatched, confirmed refunds sent before the query are matched', () => {
    forAll((g, a) => {
      for (const one of named(g.own, a.matchedOwn))
        expect(one).toMatchObject({ matched: false, evidence: 'confirmed', sentBefore: true })
      for (const one of a.matchedExternal) expect(one.matched).toBe(false)
      for (const one of named(g.own, a.doubtful))
        expect(one).toMatchObject({ matched: true, evidence: 'inferred' })
    })
  })

  it('inference takes all open refunds or none, leaves nothing over, and never under review', () => {
    forAll((g, a) => {
      if (a.inferred.length === 0) return
      const open = g.own.filter(({ evidence, matched }) => isOpen(evidence) && !matched)
      expect(open.every(({ evidence }) => evidence === 'none')).toBe(true)
      expect(a.inferred).toEqual(open.map(({ id }) => id))
      expect(open.every(({ sentBefore }) => sentBefore)).toBe(true)
      expect(g.underReview).toBe(false)
      expect(a.doubtful).toEqual([])
      expect(a.unmatchedDelta).toBe('0')
    })
  })

  it('no confirmed refund that fits into the remainder is skipped', () => {
    forAll((g, a) => {
      const after = applyMatch(g, a)
      const rest = tenths(a.unmatchedDelta) + total(named(g.own, a.inferred))
      for (const one of [
        ...after.own.filter(({ evidence, sentBefore }) => evidence === 'confirmed' && sentBefore),
        ...after.external.filter(
          (one) => one.notifiedBeforeFirst || tenths(one.amount) > firstSightLeft(after),
        ),
      ]) {
        if (!one.matched) expect(tenths(one.amount)).toBeGreaterThan(rest)
      }
    })
  })

  it('the order of the open refunds changes nothing', () => {
    forAll((g, a) => {
      const open = g.own.filter(({ evidence }) => evidence === 'none').reverse()
      const rest = g.own.filter(({ evidence }) => evidence !== 'none')
      const turned = matchRefundedDelta({ ...g, own: [...open, ...rest] })
      expect(new Set(turned.inferred)).toEqual(new Set(a.inferred))
      expect({ ...turned, inferred: [] }).toEqual({ ...a, inferred: [] })
    })
  })

  it('the same snapshot again changes nothing', () => {
    forAll((g, a) => {
      expect(matchRefundedDelta(applyMatch(g, a))).toEqual({
        ...NOTHING,
        unmatchedDelta: a.unmatchedDelta,
        fell: tenths(a.unmatchedDelta) < 0,
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
