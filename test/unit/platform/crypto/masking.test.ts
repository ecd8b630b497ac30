import fc from 'fast-check'
import { parse, stringify } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import {
  hideSecretsInText,
  isSecretName,
  maskCardData,
  maskCardText,
  passesLuhn,
} from '../../../../src/platform/crypto/masking.ts'

const mask = (json: string) => stringify(maskCardData(parse(json)))

/** A card number: random digits and their Luhn check digit. */
const cardNumber = fc
  .array(fc.integer({ min: 0, max: 9 }), { minLength: 12, maxLength: 18 })
  .filter(([first]) => first !== 0)
  .map((digits) => {
    const last = [...Array(10).keys()].find((digit) => passesLuhn([...digits, digit]))
    return [...digits, last].join('')
  })

/** Whether the first or the last seven digits are readable; at most six and four may be. */
function showsMore(text: string, number: string): boolean {
  const joined = text.replace(/[\s\p{Pd}\p{Cf}.]/gu, '')
  return joined.includes(number.slice(0, 7)) || joined.includes(number.slice(-7))
}

describe('a card number', () => {
  it.each([
    ['"4111111111111111"', '"411111******1111"'],
    ['"pay 4111 1111 1111 1111 now"', '"pay 4111 11** **** 1111 now"'],
    ['"order 12 4111 1111 1111 1111"', '"order 12 4111 11** **** 1111"'],
    ['"4111-1111-1111-1111"', '"4111-11**-****-1111"'],
    ['"4111/1111/1111/1111"', '"4111/11**/****/1111"'],
    ['"4111.1111.1111.1111"', '"4111.11**.****.1111"'],
    ['"4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"', /^"4 1 1 1 1 1( \*){6}( 1){4}"$/],
    ['"4111111111111111 1228 123"', '"411111******1111 1228 123"'],
    ['"REF378282246310005X"', '"REF378282*****0005X"'],
    ['"6304000000000000"', '"630400******0000"'],
    ['4111111111111111', '"411111******1111"'],
    ['4111111111111111.00', '"411111******1111"'],
    ['4.111111111111111e15', '"411111******1111"'],
    ['{"a":[{"b":{"4111111111111111":[4111111111111111]}}]}', /^\S*411111\*{6}1111\S*\*{6}\S*$/],
    ['"03e01ea9-4749-4100-8209-1cde7781218d."', /41\*+-\*+209/],
    ['"03101109-4749-4102-8209-112177812181"', /\*{2}/],
    ['"4111\\u00201111\\u00a01111\\u20111111"', '"4111 11**\u00a0****\u20111111"'],
  ])('in %s is masked', (json, wanted) => {
    const masked = mask(json)
    if (typeof wanted === 'string') expect(masked).toBe(wanted)
    else expect(masked).toMatch(wanted)
  })

  it.each([
    ['cardNumber', '"4111111111111112"', '"411111******1112"'],
    ['CARDNO', '"1234567890123456"', '"123456******3456"'],
    ['card_number', '1234567890123456', '"123456******3456"'],
    ['pan', '"1234-5678-9012-3456"', '"1234-56**-****-3456"'],
    ['virtualCardNumbers', '["1234567890123456"]', '["123456******3456"]'],
    ['cardNumber', '{"clear":"1234567890123456"}', '{"clear":"123456******3456"}'],
    ['cardNumber', '"12345678"', '"****5678"'],
    ['cardNumber', '"41111111****1111"', '"411111******1111"'],
    [
      'cardNumber',
      '"03e01ea9-4749-4100-8209-1cde7781218d"',
      '"03e01ea*-****-****-****-*cde****218d"',
    ],
    ['cardNumber', '"4111111111111111 cvv 123"', '"411111****** **** *** ***"'],
  ])('under the name %s is masked without the Luhn check: %s', (name, value, wanted) => {
    const masked = mask(`{"${name}":${value}}`)
    if (value.includes('cvv')) expect(masked).not.toMatch(/123|1111111/)
    else expect(masked).toBe(`{"${name}":${wanted}}`)
  })

  it('is detected by the name of its parent', () => {
    expect(mask('{"card":{"number":"1234567890123456"}}')).toContain('"123456******3456"')
    expect(mask('{"cards":[{"no":"1234567890123456"}]}')).toContain('"123456******3456"')
  })

  it('is always masked, wherever it is and however it is written', () => {
    const separator = fc.constantFrom('', '', ' ', '-', '  ', ' - ', '.', '\u00a0', '–', '\u200b')
    const written = fc
      .tuple(cardNumber, fc.array(separator, { minLength: 19, maxLength: 19 }))
      .map(([number, between]) => ({
        number,
        text: [...number]
          .map((digit, at) => (at === 0 ? '' : (between[at] ?? '')) + digit)
          .join(''),
      }))
    const around = fc.string({ unit: fc.constantFrom('a', 'Z', ':', '*', '/', '"', 'é') })
    fc.assert(
      fc.property(written, around, around, fc.string(), ({ number, text }, before, after, name) => {
        const holder = { [name]: [{ deep: before + text + after }], message: text }
        for (const leaf of [before + text + after, text]) {
          expect(showsMore(maskCardText(leaf), number)).toBe(false)
        }
        expect(showsMore(mask(stringify(holder) ?? '') ?? '', number)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })

  it('never leaves as a JSON number or as a name', () => {
    fc.assert(
      fc.property(cardNumber, (number) => {
        expect(mask(`[${number}]`)).not.toContain(number)
        expect(mask(`{"${number}":${number}.0}`)).not.toContain(number)
      }),
    )
  })
})

describe('a CVV', () => {
  it.each([
    ['cvv', '"123"'],
    ['CVC', '123'],
    ['cardCVV', '"1234"'],
    ['card_cvv2', '"12*"'],
    ['cvvCode', '{"value":"123"}'],
    ['CVV', '["1","2","3"]'],
    ['cardSecurityCode', '"abc"'],
    ['csc', '0'],
  ])('under the name %s is hidden: %s', (name, value) => {
    expect(mask(`{"a":[{"${name}":${value}}]}`)).toBe(`{"a":[{"${name}":"***"}]}`)
  })

  it.each(['"***"', '"XXX"', '"•••"', '""', 'null', 'false'])(
    'hidden already passes: %s',
    (value) => {
      expect(mask(`{"cardCVV":${value}}`)).toBe(`{"cardCVV":${value}}`)
    },
  )

  it.each([
    ...['CVN 123', 'csc=123', 'security code: 123', 'verification_value 123'],
    ...['"securityCode":"123"', 'Card Verification Number 123'],
  ])('by another name in a text is hidden: %s', (text) => {
    expect(maskCardText(text)).toBe(text.replace('123', '***'))
  })

  it('in a text is hidden', () => {
    expect(maskCardText('wrong CVV: 123, cvc2=4567')).toBe('wrong CVV: ***, cvc2=***')
    expect(mask('{"extra":"{\\"cvv\\":\\"123\\"}"}')).not.toContain('123')
  })
})

describe('what is no card data', () => {
  it.each([
    '"411111******1111"',
    '"4111111111111112"',
    '"2026-11-21T09:33:03.254Z"',
    '"2026-11-21 09:33:03"',
    '"0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11"',
    '{"svcResponseId":"03e01ea9-4749-4100-8209-1cde7781218d"}',
    '"123456789012345678901234"',
    '10000.50',
    '20000000',
    '0.30000000000000004',
    '1e-7',
    '-12',
    '{"cardNumber":"411111******1111","cardBrand":"visa","panel":"1234567890123","company":1234567890123}',
    '{"cardNumber":"************1111","cardCVV":"***","cardLimit":10000.50}',
    '{"__proto__":{"a":1},"b":[null,true,{}]}',
  ])('passes unchanged: %s', (json) => {
    expect(mask(json)).toBe(json)
  })

  it('passes unchanged whatever it is, as long as it has no 13 digits and no such name', () => {
    const short = fc
      .jsonValue()
      .filter((value) => !/(\d\D{0,3}){13}|cv|csc/i.test(JSON.stringify(value)))
    fc.assert(
      fc.property(short, (value) => {
        const json = JSON.stringify(value)
        expect(mask(json)).toBe(stringify(parse(json)))
      }),
    )
  })
})

describe('a member that is not masked', () => {
  const unmasked = { id: true, policy: { limit: true, groups: true }, docs: { id: true } } as const
  const maskOther = (json: string) => stringify(maskCardData(parse(json), unmasked))
  const pan = '4111111111111111'

  it.each([
    `{"id":"${pan}","policy":{"limit":${pan},"groups":["${pan}",${pan}]}}`,
    `{"docs":[{"id":"${pan}"},{"id":${pan}}]}`,
  ])('passes unchanged: %s', (json) => {
    expect(maskOther(json)).toBe(json)
    expect(mask(json)).not.toBe(json)
  })

  it.each([
    `{"id":{"a":"${pan}"}}`,
    `{"id":[["${pan}"]]}`,
    `{"policy":"${pan}"}`,
    `{"policy":{"id":"${pan}"}}`,
    `{"docs":[{"policy":{"limit":"${pan}"}}]}`,
    `{"other":{"id":"${pan}"}}`,
    `{"constructor":"${pan}","__proto__":"${pan}","toString":["${pan}"]}`,
  ])('is only the value at its place: %s', (json) => {
    expect(maskOther(json)).toBe(mask(json))
    expect(maskOther(json)).not.toContain(pan)
  })
})

it('a value nested too deeply is hidden without inspection', () => {
  const deep = `${'['.repeat(100)}"4111111111111112"${']'.repeat(100)}`
  expect(mask(deep)).toBe(`${'['.repeat(64)}"***"${']'.repeat(64)}`)
})

it('an object that would be taken for a number is masked like any other', () => {
  expect(mask('{"isLosslessNumber":true,"value":"4111111111111111"}')).toBe(
    '{"value":"411111******1111"}',
  )
})

it('a mebibyte of digits is masked as quickly as it is read', () => {
  for (const text of ['4 '.repeat(500_000), '4'.repeat(1_000_000)]) {
    expect(maskCardText(text)).toHaveLength(text.length)
  }
})

describe('the name of a member', () => {
  it.each([
    ...['svc_PayToken', 'brand_PayToken', 'token', 'cardToken', 'card_token_id', 'access-token'],
    ...['client_secret', 'password', 'svc_OTP', 'otpValue', 'apiKey', 'svc_SecureHash', 'pin'],
    ...['svc_PIN', 'cardPin', 'Authorization', 'signature', 'credentials', 'refreshTokens'],
  ])('%s denotes a credential', (name) => {
    expect(isSecretName(name)).toBe(true)
  })

  it.each([
    ...['id', 'status', 'amount', 'refundedAmount', 'paymentMethod', 'svc_TransactionID'],
    ...['svc_OrderInfo', 'tokenType', 'shopping', 'mapping', 'passengers', 'svc_Currency', 'keys'],
  ])('%s does not', (name) => {
    expect(isSecretName(name)).toBe(false)
  })
})

describe('credentials in a text of unknown form', () => {
  it.each([
    ['{"svc_PayToken":"abc","id":"7"', '{"svc_PayToken":"***","id":"7"'],
    ['"{\\"payToken\\":\\"abc\\"}"', '"{\\"payToken\\":\\"***\\"}"'],
    ['svc_PayToken=abc&svc_OrderID=7', 'svc_PayToken=***&svc_OrderID=7'],
    ['<PayToken>abc</PayToken>', '<PayToken>***</PayToken>'],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer ***'],
    ['client_secret = abc', 'client_secret = ***'],
    ['the token has expired', 'the token has expired'],
  ])('%s becomes %s', (text, hidden) => {
    expect(hideSecretsInText(text)).toBe(hidden)
  })

  it('takes a time linear in its length', () => {
    const texts = ['token'.repeat(13_000), 'a'.repeat(65_000), `token${' "'.repeat(32_000)}`]
    const started = performance.now()
    for (const text of texts) expect(hideSecretsInText(text)).toBe(text)
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})
