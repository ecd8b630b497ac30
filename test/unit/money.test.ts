import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addAmounts,
  compareAmounts,
  countShownDecimals,
  parseAmount,
  readWrittenAmount,
  shortenAmount,
  subtractAmount,
} from '../../src/money.ts'
import { useTestDatabase } from '../support/use-started.ts'

const database = useTestDatabase()

const HIGHEST = '999999999999999999.9999'

describe('reading an amount as people write it', () => {
  it.each([
    ['250000', '250000'],
    ['37,000', '37000'],
    ['37,000 VND', '37000'],
    ['1.110.000', '1110000'],
    ['37.000', '37000'],
    ['1 110 000', '1110000'],
    ['1\u00a0110\u00a0000 ₫', '1110000'],
    ['VND 1,110', '1110'],
    ['150.000đ', '150000'],
    ['1.110.000 Đ', '1110000'],
    ['1.110.000 vnd', '1110000'],
    ['1,110.50', '1110.50'],
    ['1.110,50', '1110.50'],
    ['10000.50', '10000.50'],
    ['10000,50', '10000.50'],
    ['10000.500', '10000.500'],
    ['0.500', '0.500'],
    [' 77 ', '77'],
  ])('%s is %s', (text, amount) => {
    expect(readWrittenAmount(text)).toBe(amount)
  })

  it.each([
    ...[
      '',
      'VND',
      '1,1100',
      '1,110,00',
      '1.110,000',
      '12 34',
      '1,110.000.000',
      '-5',
      'DH1',
      'inv1110',
    ],
  ])('%j is none', (text) => {
    expect(readWrittenAmount(text)).toBeUndefined()
  })
})

describe('reading an amount', () => {
  it.each([
    ...[
      '0',
      '1',
      '20000000',
      '10000.50',
      '0.5',
      '0.0001',
      '10.0000',
      '999999999999999999',
      HIGHEST,
    ],
  ])('%s is kept as it was written', (text) => {
    expect(parseAmount(text)).toBe(text)
  })

  it.each([
    ['2.0E7', '20000000'],
    ['2e7', '20000000'],
    ['1.5e+3', '1500'],
    ['1e-4', '0.0001'],
    ['1.0000E1', '10'],
    ['0E0', '0'],
    ['9.999999999999999999999E17', '999999999999999999.9999'],
  ])('the exponent of %s is written out', (text, plain) => {
    expect(parseAmount(text)).toBe(plain)
  })

  it.each([
    ...['', '-1', '-0', '+1', '01', '.5', '5.', ' 1', '1 ', '1\n', '1,5', '1_000', '0x10', 'NaN'],
    ...['Infinity', '1e', '1.00001', '1000000000000000000', '1e18', '1e-5', '1.23456e0', '1e999'],
    ...['9'.repeat(50_000), '１'],
  ])('%j is no amount', (text) => {
    expect(parseAmount(text)).toBeUndefined()
  })
})

describe('calculating', () => {
  it('has no binary rounding errors', () => {
    expect(addAmounts(['0.1', '0.2'])).toBe('0.3')
    expect(subtractAmount('0.3', '0.1')).toBe('0.2')
  })

  it('is exact at 18 digits and 4 decimals', () => {
    expect(addAmounts([HIGHEST, '0.0001'])).toBe('1000000000000000000.0000')
    expect(subtractAmount(HIGHEST, '0.0001')).toBe('999999999999999999.9998')
    expect(compareAmounts(HIGHEST, '999999999999999999.9998')).toBe(1)
  })

  it('the empty sum is 0', () => {
    expect(addAmounts([])).toBe('0')
  })

  it('a difference is never below 0', () => {
    expect(subtractAmount('1', '1.0001')).toBe('0')
    expect(subtractAmount('1.00', '1')).toBe('0.00')
  })

  it('amounts compare by value, not by text', () => {
    expect(compareAmounts('10.5', '10.50')).toBe(0)
    expect(compareAmounts('9', '10')).toBe(-1)
    expect(compareAmounts('10', '9.9999')).toBe(1)
  })

  it.each([
    ['10000.50', '10000.5'],
    ['10.0000', '10'],
    ['0.0000', '0'],
    ['0.0001', '0.0001'],
    ['100000000000000000', '100000000000000000'],
  ])('%s goes out as %s', (amount, short) => {
    expect(shortenAmount(amount)).toBe(short)
  })
})

describe('an amount is shown', () => {
  it.each([
    ['150.000', 'VND', 0],
    ['150.500', 'VND', 2],
    ['10.5000', 'USD', 2],
    ['10.5001', 'USD', 4],
    ['10', 'USD', 0],
    ['1.5000', 'KWD', 3],
    ['10.000', 'points', 2],
    ['10.500', null, 2],
    ['10.0001', null, 4],
  ])('%s of %s with %i decimals', (amount, currency, decimals) => {
    expect(countShownDecimals(amount, currency)).toBe(decimals)
  })
})

describe('for any amounts', () => {
  const amount = fc
    .tuple(fc.bigInt({ min: 0n, max: 999_999_999_999_999_999n }), fc.stringMatching(/^\d{0,4}$/))
    .map(([whole, decimals]) => (decimals === '' ? `${whole}` : `${whole}.${decimals}`))

  it('sums, differences, order and shortest form are those of SQL numeric', async () => {
    const pairs = fc.sample(fc.tuple(amount, amount), 300)
    const rows = await database.sql<{ sum: string; rest: string; sign: number; short: string }[]>`
      select (a + b)::text as sum, case when a < b then '0' else (a - b)::text end as rest,
        sign(a - b)::int as sign, trim_scale(a)::text as short
      from unnest(${pairs.map(([a]) => a)}::text[]::numeric[], ${pairs.map(([, b]) => b)}::text[]::numeric[])
        with ordinality as pair (a, b, at) order by at`
    const ours = pairs.map(([a, b]) => ({
      sum: addAmounts([a, b]),
      rest: subtractAmount(a, b),
      sign: compareAmounts(a, b),
      short: shortenAmount(a),
    }))
    expect(ours).toEqual([...rows])
  })

  it('a parsed amount survives the database column unchanged', async () => {
    const amounts = fc.sample(amount, 300)
    const rows = await database.sql<{ text: string }[]>`
      select a::text as text
      from unnest(${amounts}::text[]::numeric[]) with ordinality as given (a, at) order by at`
    expect(rows.map(({ text }) => text)).toEqual(amounts.map((one) => parseAmount(one)))
  })

  it('an exponent changes the notation, not the value', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 999_999 }),
        fc.integer({ min: -4, max: 12 }),
        (n, e) => {
          const plain = parseAmount(`${n}e${e}`)
          expect(plain).toBeDefined()
          expect(Number(plain)).toBeCloseTo(n * 10 ** e, 4)
        },
      ),
    )
  })
})
