import fc from 'fast-check'
import { parse } from 'lossless-json'
import { expect, it } from 'vitest'
import { parseJsonParams } from '../../../src/gateway/parse-body.ts'

/** Parses with the exact parser alone. */
function parseExactly(text: string): unknown {
  try {
    return { params: { ...(parse(text) as object) } }
  } catch {
    return { problem: isJson(text) ? 'a parameter is given twice' : 'the body is not valid JSON' }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const name = fc.constantFrom('"a"', '"b"', '"svc_Amount"', '"\\u0061"', '"a\\""', '""', '"1"')
const number = fc.constantFrom(
  ...['0', '-0', '1', '1.0', '1.10', '0.1', '1e3', '1E3', '1e400', '-7', '12345678901234567890'],
)
const odd = fc.constantFrom(
  ...['01', '.5', '5.', 'NaN', 'null', 'true', '{}', '{"a":1}', '[1]', '1 2', '"x" "y"'],
)
const string = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\ud800"', '"\\\\"', '"\\"', '"1"', '"{\\"a\\":2}"', '"\t"'),
)
const space = fc.constantFrom('', ' ', '\n\t', '\u00a0')
const value = fc.oneof(
  { weight: 6, arbitrary: string },
  { weight: 4, arbitrary: number },
  { weight: 1, arbitrary: odd },
)
const member = fc.tuple(name, space, value, space).map(([n, s, v, t]) => `${n}${s}:${v}${t}`)
const object = fc
  .tuple(space, fc.array(member, { maxLength: 5 }), fc.constantFrom('', ',', '}', ' '))
  .map(([before, members, after]) => `${before}{${members.join(',')}}${after}`)

it('the fast way through a flat object reads what the exact parser reads, or leaves it to that', () => {
  fc.assert(
    fc.property(object, (text) => {
      expect(parseJsonParams(text)).toEqual(parseExactly(text))
    }),
    { numRuns: 5_000 },
  )
})

it.each([
  ['{"a":"1","a":"2"}', { problem: 'a parameter is given twice' }],
  ['{"a":"1","a":"2"', { problem: 'the body is not valid JSON' }],
  ['{"__proto__":"1"}', { problem: 'a parameter is named __proto__' }],
  ['[]', { problem: 'the body is not a JSON object' }],
])('%s is refused', (text, problem) => {
  expect(parseJsonParams(text)).toEqual(problem)
})
