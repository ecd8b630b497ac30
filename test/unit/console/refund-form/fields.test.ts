import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_REMARK, parseValues, readValues } from '../../../../src/console/refund-fields.ts'
import { showTo } from '../../../../src/console/view.ts'
import { readExactAmount } from '../../../../src/refunds/request-schema.ts'

const parseInEnglish = (...given: Parameters<typeof parseValues>) =>
  showTo({ language: 'en', zone: 'UTC' }, () => parseValues(...given))

const EMPTY_VALUES = readValues({ amountKind: 'all' })
const REASONS = ['Goods returned', 'Paid twice']
const asked = { needsReceiver: false, currency: null, reasons: REASONS }
const LISTED = { ...EMPTY_VALUES, reason: 'Paid twice' }

const parsePart = (amount: string, currency: string | null = null) =>
  parseInEnglish({ ...LISTED, amountKind: 'part', amount }, { ...asked, currency })

/** What the API reads from the same text. */
function readByApi(amount: string): string | undefined {
  try {
    return readExactAmount(JSON.stringify({ amount }))
  } catch {
    return undefined
  }
}

describe('the amount of a part', () => {
  it.each([
    '1e3',
    '１０',
    '-1',
    '+1',
    '0',
    '1,00,0',
    '0.0000',
    '00',
    '01',
    '.5',
    '5.',
    '0.00001',
    '9'.repeat(40),
    '9'.repeat(19),
    'NaN',
    'Infinity',
    '0x10',
    '',
    '٣',
  ])('%j is refused beside its field, as the API refuses it', (amount) => {
    expect(Object.keys(parsePart(amount).problems ?? {})).toEqual(['amount'])
    expect(readByApi(amount)).toBeUndefined()
  })

  it.each(['1', '10000.50', '0.0001', '9'.repeat(18), `${'9'.repeat(18)}.9999`])(
    '%j is read as it is written',
    (amount) => {
      expect(parsePart(amount).refund?.amount).toBe(amount)
      expect(readByApi(amount)).toBe(amount)
    },
  )

  it.each([
    ['1,000', '1000'],
    ['1.000,50', '1000.50'],
    ['1 110 000', '1110000'],
    ['1.110.000 VND', '1110000'],
    ['10,000.50', '10000.50'],
    ['37,000', '37000'],
    ['150.000', '150000'],
    ['150.000 VND', '150000'],
    ['150.000đ', '150000'],
    ['1.110.000 đ', '1110000'],
    ['150,000 vnd', '150000'],
    ['1.500', '1500'],
    ['10000.500', '10000.500'],
    ['10 ', '10'],
  ])('%j is read as people write it', (amount, read) => {
    expect(parsePart(amount).refund?.amount).toBe(read)
    expect(parsePart(amount, 'VND').refund?.amount).toBe(read)
  })

  it.each(['1.500', '1,500', '150.000 KWD'])(
    '%j is refused in a currency with three decimals, where it may be a thousand or not',
    (amount) => {
      expect(parsePart(amount, 'KWD').problems).toEqual({
        amount: 'A thousand, or three decimals? Write 1500 or 1.5000.',
      })
      expect(parsePart('1.5000', 'KWD').refund?.amount).toBe('1.5000')
      expect(parsePart('1,500,000', 'KWD').refund?.amount).toBe('1500000')
    },
  )

  it('that the API reads is read the same, but for a group of thousands', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789.,-+eE ٣１'), maxLength: 24 })
    fc.assert(
      fc.property(fc.oneof(digits, fc.string({ unit: 'binary' })), (amount) => {
        const read = readByApi(amount)
        const expected = amount.replace(/^([1-9]\d{0,2})\.(\d{3})$/, '$1$2')
        if (read !== undefined) expect(parsePart(amount).refund?.amount).toBe(expected)
      }),
      { numRuns: 2_000 },
    )
  })

  it.each([['150 USD'], ['150đ', 'USD'], ['150 usd']])(
    '%j is refused where the payment is in another currency',
    (amount, currency = 'VND') => {
      expect(parsePart(amount, currency).problems).toEqual({
        amount: `The payment is in ${currency}.`,
      })
      expect(parsePart(amount).refund?.amount).toBe('150')
    },
  )

  it('that is typed beside all that is left is a problem', () => {
    const values = { ...LISTED, amountKind: 'all', amount: '30' }
    expect(parseInEnglish(values, asked).problems).toEqual({
      amountKind: expect.stringContaining('You also wrote an amount, 30.'),
    })
    expect(parseInEnglish(LISTED, asked).refund?.amount).toBeUndefined()
  })

  it.each(['', 'ALL', 'everything'])('needs one of two choices, not %j', (amountKind) => {
    expect(Object.keys(parseInEnglish({ ...LISTED, amountKind }, asked).problems ?? {})).toEqual([
      'amountKind',
    ])
  })
})

describe('the reason', () => {
  const parse = (reason: string, reasonText = '') =>
    parseInEnglish({ ...EMPTY_VALUES, reason, reasonText }, asked)

  it('is one of the list, with the remark after it', () => {
    expect(parse('Paid twice').refund?.reason).toBe('Paid twice')
    expect(parse('Paid twice', ' at the till ').refund?.reason).toBe('Paid twice: at the till')
  })

  it('is the remark alone where it is another one', () => {
    expect(parse('other', 'a long story').refund?.reason).toBe('a long story')
  })

  it.each([
    ['', 'text', 'reason'],
    ['Ended reason', '', 'reason'],
    ['other', '', 'reasonText'],
    ['other', '  ', 'reasonText'],
    ['Paid twice', 'x'.repeat(MAX_REMARK + 1), 'reasonText'],
    ['Paid twice', 'two\nlines', 'reasonText'],
    ['Paid twice', 'a\u0000b', 'reasonText'],
  ])('%j with %j has a problem beside %s', (reason, text, field) => {
    expect(Object.keys(parse(reason, text).problems ?? {})).toEqual([field])
  })

  it('of the greatest length is one that the API takes', () => {
    const label = 'r'.repeat(80)
    const values = { ...EMPTY_VALUES, reason: label, reasonText: 'x'.repeat(MAX_REMARK) }
    const { refund } = parseInEnglish(values, { ...asked, reasons: [label] })
    expect(refund?.reason).toHaveLength(482)
  })
})

describe('the receiver', () => {
  const GIVEN = { accountName: ' NGUYEN VAN A ', accountNumber: '123456789', swiftCode: 'ASCBVNVX' }
  const parse = (more: object, needsReceiver = true) =>
    parseInEnglish({ ...LISTED, ...GIVEN, ...more }, { ...asked, needsReceiver })

  it('is read without the spaces around it', () => {
    expect(parse({}).refund?.receiver).toEqual({ ...GIVEN, accountName: 'NGUYEN VAN A' })
  })

  it('is not read where the payment needs none', () => {
    expect(parse({}, false).refund).toMatchObject({ receiver: undefined })
  })

  it.each(['accountName', 'accountNumber', 'swiftCode'])('needs its %s', (name) => {
    for (const text of ['', '  ', 'x'.repeat(141), 'a\u0007']) {
      expect(Object.keys(parse({ [name]: text }).problems ?? {})).toEqual([name])
    }
  })
})

it('a form without a field, or with a huge one, is read as short texts', () => {
  const values = readValues({ reasonText: '😀'.repeat(5_000), other: 'x' })
  expect(values.amountKind).toBe('')
  expect(values.reasonText.length).toBeLessThanOrEqual(1_000)
  expect(values.reasonText.isWellFormed()).toBe(true)
})
