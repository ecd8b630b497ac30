import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { parse } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import {
  computeSecureHash,
  listSignedParams,
  NotSignableError,
  type SignatureRule,
  verifySecureHash,
  type WireParams,
} from '../../../src/gateway/signature.ts'
import {
  PUBLISHED_QUERY as QUERY,
  PUBLISHED_QUERY_HASH as QUERY_HASH,
  PUBLISHED_REFUND as REFUND,
  PUBLISHED_REFUND_HASH as REFUND_HASH,
} from '../../support/published.ts'

const SECRET = '311235E7043244EC8306F96720748C56'
const RULE: SignatureRule = { prefix: 'svc', exclude: [] }

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const textOf = (params: WireParams, rule = RULE) =>
  listSignedParams(params, rule)
    .map(({ text }) => text)
    .join('|')

describe('known answers', () => {
  it('the published query has the published hash', () => {
    expect(computeSecureHash(QUERY, SECRET, RULE)).toBe(QUERY_HASH)
  })

  it('the published refund has the published hash without its request id, and no other with it', () => {
    const rule = { prefix: 'svc', exclude: ['RequestID'] }
    expect(computeSecureHash(REFUND, SECRET, rule)).toBe(REFUND_HASH)
    expect(computeSecureHash(REFUND, SECRET, RULE)).not.toBe(REFUND_HASH)
  })

  it('the prefix never enters the hash', () => {
    const rebrand = (name: string) => name.replace(/^svc_/, 'brand_')
    const params = Object.fromEntries(Object.entries(QUERY).map(([k, v]) => [rebrand(k), v]))
    expect(computeSecureHash(params, SECRET, { prefix: 'brand', exclude: [] })).toBe(QUERY_HASH)
  })
})

describe('what is hashed', () => {
  it('the values alone, without separator, then the secret', () => {
    const params = { svc_B: 'two', svc_A: 'one' }
    expect(computeSecureHash(params, 'key', RULE)).toBe(sha256('onetwokey'))
  })

  it('names are sorted by code unit: capitals first, no locale, no natural numbers', () => {
    const params = { svc_b: '4', svc_a10: '2', svc_a9: '3', svc_Z: '1', svc_é: '5', 'svc_😀': '6' }
    expect(textOf(params)).toBe('1|2|3|4|5|6')
  })

  it('only parameters with the prefix and its underscore, the hash itself never', () => {
    const params = {
      svc_A: '1',
      svcB: '2',
      svc: '3',
      SVC_C: '4',
      x_svc_D: '5',
      svc_SecureHash: '6',
    }
    expect(textOf(params)).toBe('1')
  })

  it('parameters that no table lists as well', () => {
    expect(textOf({ svc_A: '1', svc_NeverHeardOf: '2' })).toBe('1|2')
  })

  it('exclusions are whole names', () => {
    const rule = { prefix: 'svc', exclude: ['Trans'] }
    expect(textOf({ svc_Trans: '1', svc_TransAmount: '2' }, rule)).toBe('2')
  })

  it('integers as plain text, booleans as words, arrays joined by commas', () => {
    const params = { svc_A: 20_000_000, svc_B: true, svc_C: false, svc_D: ['x'], svc_E: ['x', 2] }
    expect(textOf(params)).toBe('20000000|true|false|x|x,2')
  })

  it('null, undefined and missing contribute nothing', () => {
    expect(textOf({ svc_A: null, svc_B: undefined, svc_C: '', svc_D: '1' })).toBe('|||1')
    expect(computeSecureHash({ svc_A: null, svc_B: '1' }, 'key', RULE)).toBe(sha256('1key'))
  })

  it('numbers of a JSON body exactly as their text', () => {
    const params = parse(
      '{"svc_A":10000.50,"svc_B":2.0E7,"svc_C":900719925474099312345}',
    ) as WireParams
    expect(textOf(params)).toBe('10000.50|2.0E7|900719925474099312345')
  })

  it('text as UTF-8', () => {
    const hash = createHash('sha256').update(Buffer.from('đơn hàng 😀key', 'utf8')).digest('hex')
    expect(computeSecureHash({ svc_A: 'đơn hàng 😀' }, 'key', RULE)).toBe(hash)
  })

  it('a nested object is refused by name, unless it is excluded', () => {
    const params = { svc_A: '1', svc_ExtData: { a: 1 } }
    expect(() => computeSecureHash(params, 'key', RULE)).toThrow(NotSignableError)
    expect(() => computeSecureHash(params, 'key', RULE)).toThrow('svc_ExtData')
    expect(() => computeSecureHash({ svc_A: [{}] }, 'key', RULE)).toThrow(NotSignableError)
    expect(textOf(params, { prefix: 'svc', exclude: ['ExtData'] })).toBe('1')
  })
})

describe('verifying', () => {
  const verify = (hash: unknown, secrets = [SECRET]) =>
    verifySecureHash({ ...QUERY, svc_SecureHash: hash }, secrets, RULE)

  it('either letter case of the right hash is verified', () => {
    expect(verify(QUERY_HASH)).toBe('verified')
    expect(verify(QUERY_HASH.toUpperCase())).toBe('verified')
  })

  it('any of the secrets will do, and no other', () => {
    expect(verify(QUERY_HASH, ['new', SECRET])).toBe('verified')
    expect(verify(QUERY_HASH, [SECRET, 'old'])).toBe('verified')
    expect(verify(QUERY_HASH, ['new', 'old'])).toBe('wrong')
    expect(verify(QUERY_HASH, [])).toBe('wrong')
  })

  it.each([undefined, null, ''])('%j is a missing hash', (hash) => {
    expect(verify(hash)).toBe('missing')
  })

  it.each([
    ...['f'.repeat(64), QUERY_HASH.slice(0, 63), `${QUERY_HASH}0`, `${QUERY_HASH}\n`],
    ...[` ${QUERY_HASH}`, 'g'.repeat(64), 0, true, [QUERY_HASH], { hash: QUERY_HASH }],
  ])('%j is a wrong hash', (hash) => {
    expect(verify(hash)).toBe('wrong')
  })

  it('a hash inherited from a prototype is none', () => {
    const params = Object.assign(Object.create({ svc_SecureHash: QUERY_HASH }), QUERY)
    expect(verifySecureHash(params, [SECRET], RULE)).toBe('missing')
  })

  it('a nested object that is not excluded cannot be verified', () => {
    const params = { ...QUERY, svc_ExtData: {}, svc_SecureHash: QUERY_HASH }
    expect(verifySecureHash(params, [SECRET], RULE)).toBe('unverifiable')
  })
})

describe('for any parameters', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9]{1,8}$/).filter((one) => one !== 'SecureHash')
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean())
  const fields = fc.dictionary(name, value, { minKeys: 1, maxKeys: 8, noNullPrototype: true })
  const wire = (given: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(given).map(([key, one]) => [`svc_${key}`, one]))
  const hash = (params: WireParams, exclude: string[] = []) =>
    computeSecureHash(params, SECRET, { prefix: 'svc', exclude })

  it('any change of a signed value changes the hash, and it is verified no more', () => {
    fc.assert(
      fc.property(fields, fc.nat(), fc.string({ minLength: 1 }), (given, at, more) => {
        const params = wire(given)
        const names = Object.keys(params)
        const changed = names[at % names.length] ?? ''
        const other = { ...params, [changed]: `${params[changed]}${more}` }
        expect(hash(other)).not.toBe(hash(params))
        const forged = { ...other, svc_SecureHash: hash(params) }
        expect(verifySecureHash(forged, [SECRET], RULE)).toBe('wrong')
      }),
    )
  })

  it('excluded and foreign members do not matter, whatever they hold', () => {
    fc.assert(
      fc.property(fields, name, fc.jsonValue(), (given, extra, anything) => {
        const { [extra]: _, ...kept } = given
        const params = wire(kept)
        const more = { ...params, [`svc_${extra}`]: anything, [extra]: anything }
        expect(hash(more, [extra])).toBe(hash(params, [extra]))
      }),
    )
  })

  it('what is signed is verified after a journey through JSON', () => {
    fc.assert(
      fc.property(fields, (given) => {
        const params = wire(given)
        const text = JSON.stringify({ ...params, svc_SecureHash: hash(params) })
        expect(verifySecureHash(parse(text) as WireParams, [SECRET], RULE)).toBe('verified')
      }),
    )
  })
})
