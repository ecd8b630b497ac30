import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Attribution,
  attributeGrowth,
  type ForeignRefund,
  type Growth,
  type OwnRefund,
} from '../../src/refunds/attribute.ts'

const own = (id: string, amount: string, facts: Partial<OwnRefund> = {}): OwnRefund => ({
  id,
  amount,
  standing: 'open',
  matched: false,
  sentBefore: true,
  sentAmidGrowth: false,
  inferred: false,
  ...facts,
})
const known = (id: string, amount: string, facts: Partial<OwnRefund> = {}) =>
  own(id, amount, { standing: 'known', ...facts })
const concluded = (id: string, amount: string) =>
  own(id, amount, { standing: 'done', matched: true, inferred: true })
const foreign = (id: string, amount: string, matched = false): ForeignRefund => ({
  id,
  amount,
  matched,
})
const grow = (now: string, facts: Partial<Growth> = {}) =>
  attributeGrowth({ atFirst: '0', now, own: [], foreign: [], underReview: false, ...facts })
const NOTHING: Attribution = {
  matchedOwn: [],
  matchedForeign: [],
  inferred: [],
  doubtful: [],
  unexplained: '0',
}

describe('growth', () => {
  it('from before the payment was first seen belongs to nobody', () => {
    expect(grow('30', { atFirst: '30', own: [own('a', '30')] })).toEqual(NOTHING)
  })

  it('settles the only open refund of its amount', () => {
    expect(grow('30', { own: [own('a', '30.00')] })).toEqual({ ...NOTHING, inferred: ['a'] })
  })

  it('settles all open refunds when it equals their sum', () => {
    const both = [own('a', '0.1'), own('b', '0.2')]
    expect(grow('0.3', { own: both })).toEqual({ ...NOTHING, inferred: ['a', 'b'] })
  })

  it.each([
    ['less than the only open refund', '29', [own('a', '30')]],
    ['more than the only open refund', '31', [own('a', '30')]],
    ['one of two equal open refunds', '30', [own('a', '30'), own('b', '30')]],
    ['one of two different open refunds', '30', [own('a', '30'), own('b', '20')]],
  ])('of %s settles nobody and is unexplained', (_, now, list) => {
    expect(grow(now, { own: list })).toEqual({ ...NOTHING, unexplained: now })
  })

  it('settles nobody by inference while a refund is under review', () => {
    const result = grow('30', { own: [own('a', '30')], underReview: true })
    expect(result).toEqual({ ...NOTHING, unexplained: '30' })
  })

  it('is matched to known refunds even while one is under review', () => {
    const result = grow('30', { own: [known('a', '30')], underReview: true })
    expect(result).toEqual({ ...NOTHING, matchedOwn: ['a'] })
  })

  it('seen by a query sent before the refund settles and matches nobody', () => {
    const late = { sentBefore: false }
    expect(grow('30', { own: [own('a', '30', late)] }).unexplained).toBe('30')
    expect(grow('30', { own: [known('a', '30', late)] }).unexplained).toBe('30')
    expect(grow('30', { own: [own('a', '30'), own('b', '10', late)] }).inferred).toEqual([])
  })

  it('goes to known refunds before open ones, ours before foreign ones', () => {
    const list = [own('a', '30'), known('b', '30')]
    expect(grow('30', { own: list, foreign: [foreign('f', '30')] })).toEqual({
      ...NOTHING,
      matchedOwn: ['b'],
    })
    expect(grow('60', { own: list, foreign: [foreign('f', '30')] })).toEqual({
      ...NOTHING,
      matchedOwn: ['b'],
      matchedForeign: ['f'],
    })
    expect(grow('90', { own: list, foreign: [foreign('f', '30')] }).inferred).toEqual(['a'])
  })

  it('goes to the oldest first, and to a younger one when only that fits whole', () => {
    const list = [known('old', '30'), known('young', '20')]
    expect(grow('30', { own: list }).matchedOwn).toEqual(['old'])
    expect(grow('25', { own: list })).toEqual({
      ...NOTHING,
      matchedOwn: ['young'],
      unexplained: '5',
    })
  })

  it('says nothing about a refund whose failure was notified', () => {
    const list = [own('a', '30', { standing: 'failing' }), own('b', '30')]
    expect(grow('30', { own: list })).toEqual({ ...NOTHING, inferred: ['b'] })
  })

  it('that was matched once is not matched again', () => {
    const list = [known('a', '30', { matched: true }), own('b', '30')]
    expect(grow('30', { own: list })).toEqual(NOTHING)
    expect(grow('30', { own: [own('b', '30')], foreign: [foreign('f', '30', true)] })).toEqual(
      NOTHING,
    )
  })
})

describe('what was inferred', () => {
  it('is in doubt again, the youngest first, when the growth goes away', () => {
    const list = [concluded('a', '30'), concluded('b', '30')]
    expect(grow('30', { own: list })).toEqual({ ...NOTHING, doubtful: ['b'] })
    expect(grow('0', { own: list })).toEqual({ ...NOTHING, doubtful: ['b', 'a'] })
  })

  it('gives way to a foreign refund of the same amount that finds no growth of its own', () => {
    const list = [concluded('a', '30')]
    expect(grow('30', { own: list, foreign: [foreign('f', '30')] })).toEqual({
      ...NOTHING,
      matchedForeign: ['f'],
      doubtful: ['a'],
    })
    expect(grow('60', { own: list, foreign: [foreign('f', '30')] }).doubtful).toEqual([])
    expect(grow('30', { own: list, foreign: [foreign('f', '20')] }).doubtful).toEqual([])
  })

  it('stays when a known refund has no growth yet, which stays unmatched', () => {
    const list = [concluded('a', '30'), known('b', '30')]
    expect(grow('30', { own: list })).toEqual(NOTHING)
  })

  it('leaves what a notification proved alone when growth falls back', () => {
    expect(grow('10', { own: [known('a', '30', { matched: true })] })).toEqual({
      ...NOTHING,
      unexplained: '-20',
    })
  })
})

/** Tenths, so that whatever is added as binary floating point shows. */
const amount = fc.integer({ min: 1, max: 6 }).map((tenths) => (tenths / 10).toFixed(1))
const ownRefund = fc
  .record({
    amount,
    standing: fc.constantFrom('known' as const, 'open', 'failing', 'done'),
    matched: fc.boolean(),
    sentBefore: fc.boolean(),
    sentAmidGrowth: fc.boolean(),
  })
  .map(
    ({ standing, matched, ...rest }): Omit<OwnRefund, 'id'> => ({
      ...rest,
      standing,
      inferred: standing === 'done',
      matched: standing === 'done' || (standing === 'known' && matched),
    }),
  )
const growth: fc.Arbitrary<Growth> = fc
  .record({
    atFirst: fc.constantFrom('0', '0.3'),
    grown: fc.integer({ min: 0, max: 20 }),
    own: fc.array(ownRefund, { maxLength: 5 }),
    foreign: fc.array(fc.record({ amount, matched: fc.boolean() }), { maxLength: 3 }),
    underReview: fc.boolean(),
  })
  .map(({ grown, own: ours, foreign: others, ...rest }) => ({
    ...rest,
    now: (Number(rest.atFirst) + grown / 10).toFixed(1),
    own: ours.map((one, i) => ({ ...one, id: `o${i}` })),
    foreign: others.map((one, i) => ({ ...one, id: `f${i}` })),
  }))
const tenths = (text: string) => Math.round(Number(text) * 10)
const total = (list: readonly { amount: string }[]) =>
  list.reduce((sum, one) => sum + tenths(one.amount), 0)
const named = <T extends { id: string }>(list: readonly T[], ids: readonly string[]) =>
  list.filter(({ id }) => ids.includes(id))
const forAll = (holds: (g: Growth, a: Attribution) => void) =>
  fc.assert(
    fc.property(growth, (g) => holds(g, attributeGrowth(g))),
    { numRuns: 3000 },
  )

/** The refunds as they are once the result is written. */
function follow(g: Growth, a: Attribution): Growth {
  const matched = [...a.matchedOwn, ...a.inferred]
  return {
    ...g,
    own: g.own
      .filter(({ id }) => !a.doubtful.includes(id))
      .map((one): OwnRefund => {
        if (!matched.includes(one.id)) return one
        const inferred = a.inferred.includes(one.id)
        return { ...one, matched: true, inferred, standing: inferred ? 'done' : 'known' }
      }),
    foreign: g.foreign.map((one) => ({
      ...one,
      matched: one.matched || a.matchedForeign.includes(one.id),
    })),
    underReview: g.underReview || a.doubtful.length > 0,
  }
}

describe('whatever happened', () => {
  it('every unit of growth is counted once: matched, or unexplained', () => {
    forAll((g, a) => {
      const after = follow(g, a)
      const explained = [...after.own, ...after.foreign].filter(({ matched }) => matched)
      expect(total(explained) + tenths(a.unexplained)).toBe(tenths(g.now) - tenths(g.atFirst))
    })
  })

  it('nothing is matched beyond the growth', () => {
    forAll((_, a) => {
      if ([...a.matchedOwn, ...a.matchedForeign, ...a.inferred].length > 0)
        expect(tenths(a.unexplained)).toBeGreaterThanOrEqual(0)
    })
  })

  it('only who was unmatched is matched, only the known, and only by a query sent later', () => {
    forAll((g, a) => {
      for (const one of named(g.own, a.matchedOwn))
        expect(one).toMatchObject({ matched: false, standing: 'known', sentBefore: true })
      for (const one of named(g.foreign, a.matchedForeign)) expect(one.matched).toBe(false)
      for (const one of named(g.own, a.doubtful))
        expect(one).toMatchObject({ matched: true, inferred: true })
    })
  })

  it('inference takes all open refunds or none, leaves nothing over, and never under review', () => {
    forAll((g, a) => {
      if (a.inferred.length === 0) return
      const open = g.own.filter(({ standing }) => standing === 'open')
      expect(a.inferred).toEqual(open.map(({ id }) => id))
      expect(open.every(({ sentBefore }) => sentBefore)).toBe(true)
      expect(g.underReview).toBe(false)
      expect(a.doubtful).toEqual([])
      expect(a.unexplained).toBe('0')
    })
  })

  it('no known refund that the remainder would hold is passed over', () => {
    forAll((g, a) => {
      const after = follow(g, a)
      const rest = tenths(a.unexplained) + total(named(g.own, a.inferred))
      for (const one of [
        ...after.own.filter(({ standing, sentBefore }) => standing === 'known' && sentBefore),
        ...after.foreign,
      ]) {
        if (!one.matched) expect(tenths(one.amount)).toBeGreaterThan(rest)
      }
    })
  })

  it('the order of the open refunds changes nothing', () => {
    forAll((g, a) => {
      const open = g.own.filter(({ standing }) => standing === 'open').reverse()
      const rest = g.own.filter(({ standing }) => standing !== 'open')
      const turned = attributeGrowth({ ...g, own: [...open, ...rest] })
      expect(new Set(turned.inferred)).toEqual(new Set(a.inferred))
      expect({ ...turned, inferred: [] }).toEqual({ ...a, inferred: [] })
    })
  })

  it('the same snapshot again says nothing new', () => {
    forAll((g, a) => {
      expect(attributeGrowth(follow(g, a))).toEqual({ ...NOTHING, unexplained: a.unexplained })
    })
  })
})
