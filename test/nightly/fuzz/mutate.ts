import fc from 'fast-check'

/** Texts that break careless readers: as JSON, as an escape, or bare. */
export const ODD = [
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\n"',
  '"__proto__"',
  '"constructor"',
  '""',
  '" "',
  '"\u202e\u00e9\u{1f600}"',
  `"${'x'.repeat(129)}"`,
  `"${'9'.repeat(400)}"`,
  'null',
  'true',
  '{}',
  '[]',
  '[1,[{}]]',
  '-1',
  '-0',
  '0.00001',
  '1e400',
  '1e-400',
  '9007199254740993.00010',
  '1234567890123456789012345',
  '%00',
  '%ff',
  '%25',
  '%2f',
  '%',
  '..',
  '\0',
  '\r\n',
  "'; --",
  '\\',
  '{"isLosslessNumber":true,"value":"x"}',
  `${'['.repeat(9_000)}${']'.repeat(9_000)}`,
] as const

/** What no column, log or header can hold, and what is only just too long for an id. */
export const UNFIT = [
  '\0',
  'a\u0001b',
  '\x7f',
  'a\ud800',
  '\udc00b',
  ' \t',
  'x'.repeat(129),
] as const

/** Numbers are places: whatever they are, they are taken modulo the length. */
type Edit =
  | { kind: 'set'; at: number; byte: number }
  | { kind: 'flip'; at: number; bit: number }
  | { kind: 'insert'; at: number; text: string }
  | { kind: 'cut'; at: number; size: number }
  | { kind: 'repeat'; at: number; size: number }
  | { kind: 'end'; at: number }
  /** A JSON text, number or word becomes another one. */
  | { kind: 'swap'; at: number; text: string }

const at = fc.nat(0xffff)
const size = fc.integer({ min: 1, max: 24 })
const odd = fc.constantFrom(...ODD)

const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('swap'), at, text: odd }) },
  fc.record({ kind: fc.constant('set'), at, byte: fc.nat(255) }),
  fc.record({ kind: fc.constant('flip'), at, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant('insert'), at, text: odd }),
  fc.record({ kind: fc.constant('cut'), at, size }),
  fc.record({ kind: fc.constant('repeat'), at, size }),
  fc.record({ kind: fc.constant('end'), at }),
)

/** One of the recorded texts with at most four edits, as bytes. */
export function mutateOneOf(samples: readonly string[], minLength = 0): fc.Arbitrary<Buffer> {
  const edits = fc.array(edit, { minLength, maxLength: 4 })
  return fc
    .tuple(fc.constantFrom(...samples), edits)
    .map(([sample, list]) => list.reduce(apply, Buffer.from(sample)))
}

function apply(bytes: Buffer, one: Edit): Buffer {
  const place = one.at % Math.max(1, bytes.length)
  const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)]
  switch (one.kind) {
    case 'set':
      return Buffer.concat([before, Buffer.of(one.byte), after.subarray(1)])
    case 'flip':
      return Buffer.concat([before, Buffer.of((after[0] ?? 0) ^ (1 << one.bit)), after.subarray(1)])
    case 'insert':
      return Buffer.concat([before, Buffer.from(one.text), after])
    case 'cut':
      return Buffer.concat([before, after.subarray(one.size)])
    case 'repeat':
      return Buffer.concat([before, after.subarray(0, one.size), after])
    case 'end':
      return before
    case 'swap':
      return swap(bytes, one)
  }
}

function swap(bytes: Buffer, { at, text }: { at: number; text: string }): Buffer {
  // Every byte is a character here, so that broken UTF-8 stays what it is.
  const whole = bytes.toString('latin1')
  const found = [...whole.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+]*|true|false|null/g)]
  const one = found[at % Math.max(1, found.length)]
  if (!one) return bytes
  const end = one.index + one[0].length
  return Buffer.concat([bytes.subarray(0, one.index), Buffer.from(text), bytes.subarray(end)])
}
