import { describe, expect, it } from 'vitest'
import type { Guard } from '../nightly/guards/guard.ts'
import { GUARDS, LEAST_GUARDS } from '../nightly/guards.ts'
import { drawTenth, selectGuards } from '../nightly/play-guards/choose.ts'
import { judge, type Outcome, type Seen } from '../nightly/play-guards/judge.ts'
import { countOccurrences } from '../nightly/play-guards/tree.ts'

const ROW: Guard = {
  file: 'src/caps.ts',
  text: 'used > cap',
  mutation: 'used > cap * 2',
  test: 'test/caps.test.ts',
  claim: 'a cap refuses what exceeds it',
  control: 'a cap allows what fits',
}
const PASSED: Outcome = { state: 'passed' }
const RED: Outcome = { state: 'failed', error: 'AssertionError', message: 'expected 202 to be 409' }
const PROVED: Seen = { occurrences: 1, claim: RED, control: PASSED }

describe('a row of the ledger of guards', () => {
  it('proves its guard when an assertion fails the claim, and the control passes', () => {
    expect(judge(ROW, PROVED)).toBeUndefined()
  })

  it.each<[string, Partial<Seen>, RegExp]>([
    ['its file is gone', { occurrences: undefined }, /^src\/caps\.ts is gone: name the file/],
    ['its text is not found', { occurrences: 0 }, /has the text no more: copy the lines/],
    ['its text is found twice', { occurrences: 2 }, /has the text 2 times: lengthen it/],
    ['its mutation does not compile', { typeError: 'error TS2322' }, /not compile: .*TS2322/],
    [
      'its claim passes',
      { claim: PASSED },
      /passes without the guard: the mutation changes nothing/,
    ],
    [
      'its claim is missing',
      { claim: { state: 'missing' } },
      /no test “a cap refuses what exceeds it”/,
    ],
    [
      'its test cannot be loaded',
      { claim: { state: 'missing', reason: 'Cannot find module' } },
      /that runs \(Cannot find module\): give the row/,
    ],
    [
      'its claim ends by a time-out',
      { claim: { state: 'failed', error: 'Error', message: 'Test timed out in 60000ms.' } },
      /ends with Error, not by an assertion: “Test timed out/,
    ],
    ['its control fails', { control: RED }, /the control “a cap allows what fits” fails as well/],
    [
      'its control is missing',
      { control: { state: 'missing' } },
      /no test “a cap allows what fits”/,
    ],
  ])('is reported when %s, with what to do', (_, seen, fault) => {
    expect(judge(ROW, { ...PROVED, ...seen })).toMatch(fault)
  })

  it('is reported when its mutation is its text', () => {
    expect(judge({ ...ROW, mutation: ROW.text }, PROVED)).toBe(
      'the mutation is the text itself: write a defect',
    )
  })
})

describe('the ledger of guards', () => {
  it('does not shrink', () => {
    expect(GUARDS.length).toBeGreaterThanOrEqual(LEAST_GUARDS)
  })

  it('has no row twice, and no claim that is its own control', () => {
    const mutations = GUARDS.map(({ file, text, mutation }) => `${file}\n${text}\n${mutation}`)
    expect(mutations.filter((one, at) => mutations.indexOf(one) !== at)).toEqual([])
    expect(GUARDS.filter(({ claim, control }) => claim === control)).toEqual([])
  })

  it('has only rows whose text stands once in its file', () => {
    const places = GUARDS.map((guard) => ({ ...guard, occurrences: countOccurrences('.', guard) }))
    expect(places.filter(({ occurrences }) => occurrences !== 1)).toEqual([])
  })

  it('gives a tenth, drawn by the commit: the same rows each time, others for the next commit', () => {
    const rows = Array.from({ length: 95 }, (_, n) => ({ ...ROW, text: `guard ${n}` }))
    const drawn = drawTenth(rows, 'a')
    expect(drawn).toHaveLength(10)
    expect(drawTenth(rows, 'a')).toEqual(drawn)
    expect(drawTenth(rows, 'b')).not.toEqual(drawn)
  })

  it('gives the rows whose file, test or claim contains a text', () => {
    const other = { ...ROW, file: 'src/holds.ts', test: 'test/holds.test.ts', claim: 'a hold' }
    expect(selectGuards([ROW, other], 'caps')).toEqual([ROW])
    expect(selectGuards([ROW, other], 'a hold')).toEqual([other])
    expect(selectGuards([ROW, other], '')).toEqual([ROW, other])
  })
})
