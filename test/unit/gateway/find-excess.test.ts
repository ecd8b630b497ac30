import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findExcess } from '../../../src/gateway/parse-body.ts'

const members = (count: number, value: unknown = 'x,{["\\') =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`a,"${n}`, value])))
const pairs = (count: number, between = '&') =>
  Array.from({ length: count }, (_, n) => `a${n}=`).join(between)
const MEMBERS = { problem: 'more than 64 members' }
const NESTED = { problem: 'the JSON has more than 1000 nested values' }
const DEEP = { problem: 'the JSON is nested deeper than 64 levels' }

describe('64 members are taken and 65 are not', () => {
  it.each([
    ['JSON', 'json', members],
    ['JSON with spaces', 'json', (count: number) => members(count).replaceAll(',"a', ' ,\n "a')],
    ['a form', 'form', pairs],
    ['a form with empty pairs', 'form', (count: number) => `&&${pairs(count, '&&&')}&`],
  ] as const)('in %s', (_, format, make) => {
    expect(findExcess(make(64), format)).toBeUndefined()
    expect(findExcess(make(65), format)).toEqual(MEMBERS)
    expect(findExcess(make(5_300), format)).toEqual(MEMBERS)
  })

  it('however the names are repeated', () => {
    expect(findExcess(`{${'"a":1,'.repeat(64)}"a":1}`, 'json')).toEqual(MEMBERS)
  })

  it('in a list as well', () => {
    expect(findExcess(JSON.stringify(Array(65).fill(1)), 'json')).toEqual(MEMBERS)
  })
})

describe('nested values', () => {
  it.each([
    [JSON.stringify({ a: Array(990).fill(1) }), undefined],
    [JSON.stringify({ a: Array(1_100).fill(1) }), NESTED],
    [JSON.stringify({ a: Array(1_100).fill([]) }), NESTED],
    [`{"a":${'['.repeat(63)}${']'.repeat(63)}}`, undefined],
    [`{"a":${'['.repeat(64)}${']'.repeat(64)}}`, DEEP],
    [`{"a":${'{"b":'.repeat(64)}1${'}'.repeat(64)}}`, DEEP],
    [JSON.stringify({ a: ',{['.repeat(20_000) }), undefined],
    [`{"a":"${'\\\\\\",'.repeat(10_000)}"}`, undefined],
  ])('of %.30s…', (text, problem) => {
    expect(findExcess(text, 'json')).toEqual(problem)
  })
})

it('an object is counted as its parser counts it', () => {
  const text = fc.string({ unit: fc.constantFrom('"', '\\', ',', '{', '[', '}', ']', 'x') })
  const object = fc.dictionary(text, text, { minKeys: 55, maxKeys: 75, size: 'max' })
  fc.assert(
    fc.property(object, (value) => {
      const excess = findExcess(JSON.stringify(value), 'json')
      expect(excess).toEqual(Object.keys(value).length > 64 ? MEMBERS : undefined)
    }),
    { numRuns: 300 },
  )
})
