import { afterEach, describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { countRows } from '../support/database.ts'
import { MERCHANT, postIpn, signIpn, toForm } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'

const rig = useRig()

/** After every refusal: nothing is stored, nothing was queried, and the process keeps serving. */
afterEach(async () => {
  expect(await countRows(rig.database)).toEqual({})
  expect(await rig.control('GET', '/calls')).toEqual({ data: [] })
  expect((await rig.api('/healthz')).status).toBe(200)
})

const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }
const GOOD = signIpn({ svc_TransactionID: 'T1', svc_OrderID: 'DH1', svc_Amount: 10_000 })
const text = JSON.stringify(GOOD)

/** Signed as given, whatever the values are. */
function sign(fields: Record<string, unknown>) {
  const params = { svc_MerchantCode: MERCHANT.merchantCode, svc_Command: 'PAY', ...fields }
  const rule = { prefix: 'svc', exclude: ['TransAmount', 'ExtData'] }
  return { ...params, svc_SecureHash: computeSecureHash(params, MERCHANT.secret, rule) }
}

async function expectRefusal(
  body: Parameters<typeof postIpn>[1],
  status: number,
  why: string | RegExp,
  headers: Record<string, string> = JSON_TYPE,
) {
  expect(await postIpn(rig.service.url, body, headers)).toEqual({
    status,
    answer: { respcode: 1, respmsg: expect.stringMatching(why) },
  })
}

describe('a body that cannot be parsed is refused with 400', () => {
  it.each([
    ['nothing', '', 'not valid JSON'],
    ['no JSON', 'svc_TransactionID=T1', 'not valid JSON'],
    ['half of it', text.slice(0, -1), 'not valid JSON'],
    ['more after it', `${text}{}`, 'not valid JSON'],
    ['a list', `[${text}]`, 'not a JSON object'],
    ['a string', JSON.stringify(text), 'not a JSON object'],
    ['a number', '1', 'not a JSON object'],
    ['null', 'null', 'not a JSON object'],
    ['NUL', `${text}\0`, 'not UTF-8 text'],
    ['nesting without end', `{"svc_ExtData":${'['.repeat(30_000)}`, 'nested deeper than 64 levels'],
    [
      'closed nesting',
      `${text.slice(0, -1)},"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
      /JSON/,
    ],
    ['a member twice', text.replace('{', '{"svc_TransactionID":"T2",'), 'not valid JSON'],
    ['__proto__', text.replace('{', '{"__proto__":"x",'), '__proto__'],
    ['__proto__ as an object', text.replace('{', '{"__proto__":{"a":1},'), '__proto__'],
    ['__proto__ in disguise', text.replace('{', '{"\\u005f_proto__":null,'), '__proto__'],
    ['all in __proto__', `{"__proto__":${text}}`, '__proto__'],
  ])('%s', async (_what, body, why) => {
    await expectRefusal(body, 400, why)
  })

  it('bytes that are not UTF-8', async () => {
    await expectRefusal(Buffer.from(text.replace('DH1', 'DH\xff'), 'latin1'), 400, 'not UTF-8 text')
  })

  it.each([
    ['a name twice', 'svc_TransactionID=T1&svc_TransactionID=T1', 'given twice'],
    ['a name twice in disguise', 'svc_TransactionID=T1&svc_%54ransactionID=T2', 'given twice'],
    ['__proto__', 'svc_TransactionID=T1&__proto__=x', '__proto__'],
    ['bytes that are not UTF-8', 'svc_TransactionID=T%ff', 'not UTF-8 text'],
    ['half a surrogate', 'svc_TransactionID=T%ed%a0%80', 'not UTF-8 text'],
    ['NUL', 'svc_TransactionID=T%00', 'svc_TransactionID holds control characters'],
    ['nothing', '', 'svc_TransactionID is missing'],
    ['JSON', text, 'svc_TransactionID is missing'],
  ])('as a form, %s', async (_what, body, why) => {
    await expectRefusal(body, 400, why, FORM_TYPE)
  })
})

describe('more than 64 members, though well signed, are refused with 400', () => {
  const count = Object.keys(GOOD).length
  const make = (members: number) => ({
    ...GOOD,
    ...Object.fromEntries(Array.from({ length: members - count }, (_, n) => [`note${n}`, 'x'])),
  })

  it('in JSON, and in a form', async () => {
    await expectRefusal(make(65), 400, /^more than 64 members$/)
    await expectRefusal(toForm(make(65)), 400, /^more than 64 members$/, FORM_TYPE)
    const nested = { ...GOOD, svc_ExtData: Array(1_001).fill(1) }
    await expectRefusal(nested, 400, 'more than 1000 nested values')
  })

  it('and 64 are read as far as their hash', async () => {
    const forged = { ...make(64), svc_SecureHash: '0'.repeat(64) }
    await expectRefusal(forged, 401, 'is wrong')
    await expectRefusal(toForm(forged), 401, 'is wrong', FORM_TYPE)
  })
})

describe('an invalid id is refused with 400 and its name, even when well signed', () => {
  it.each([
    ['missing', undefined, 'missing or empty'],
    ['null', null, 'missing or empty'],
    ['empty', '', 'missing or empty'],
    ['blank', '  \t', 'missing or empty'],
    ['of 129 characters', 'x'.repeat(129), 'longer than 128'],
    ['with a line break', 'T\n1', 'control characters'],
    ['with NUL', 'T\u0000', 'control characters'],
    ['with C1 control characters', 'T\u0085', 'control characters'],
    ['half a surrogate', 'T\ud800', 'control characters'],
    ['a boolean', true, 'must be a string'],
    ['a list', ['T1'], 'must be a string'],
  ])('svc_TransactionID is %s', async (_what, id, why) => {
    const reason = new RegExp(`^svc_TransactionID .*${why}`)
    await expectRefusal(sign({ svc_TransactionID: id }), 400, reason)
  })

  it('svc_TransactionID is an object', async () => {
    const body = { ...GOOD, svc_TransactionID: { id: 'T1' } }
    await expectRefusal(body, 400, 'svc_TransactionID must be a string')
  })

  it('a refund has no svc_RequestID, though it has a transaction', async () => {
    const refund = { svc_Command: 'REFUND', svc_TransactionID: 'R1' }
    await expectRefusal(signIpn(refund, { exclude: [] }), 400, 'svc_RequestID is missing')
  })
})

describe('an invalid signature is refused with 401', () => {
  const { svc_SecureHash: hash, ...unsigned } = GOOD

  it.each([
    ['missing', unsigned, 'missing'],
    ['empty', { ...unsigned, svc_SecureHash: '' }, 'missing'],
    ['of another secret', signIpn({ svc_TransactionID: 'T1' }, { secret: 'other' }), 'wrong'],
    ['of other fields', { ...GOOD, svc_OrderID: 'DH2' }, 'wrong'],
    ['of fewer fields', { ...GOOD, svc_New: 'x' }, 'wrong'],
    ['no hash at all', { ...GOOD, svc_SecureHash: 'x' }, 'wrong'],
    ['in a list', { ...GOOD, svc_SecureHash: [hash] }, 'wrong'],
    ['over an object', { ...GOOD, svc_Extra: {} }, 'unverifiable'],
    [
      'over excluded fields',
      signIpn({ svc_TransactionID: 'T1', svc_ExtData: 'x' }, { exclude: [] }),
      'wrong',
    ],
  ])('%s', async (_what, body, verdict) => {
    await expectRefusal(body, 401, `svc_SecureHash is ${verdict}`)
  })

  it("a refund's that does not cover its svc_RequestID", async () => {
    const refund = { svc_Command: 'REFUND', svc_RequestID: 'R1', svc_PaymentID: '7' }
    await expectRefusal(signIpn(refund, { exclude: ['RequestID'] }), 401, 'is wrong')
  })

  it('a form whose text was changed', async () => {
    const form = new URLSearchParams(toForm(GOOD))
    form.set('svc_OrderID', 'DH1 ')
    await expectRefusal(form.toString(), 401, 'is wrong', FORM_TYPE)
  })
})

it.each(['NOBODY', 'uflyil', ' ', '__proto__', 'constructor'])(
  'the merchant code %j is not known: 404',
  async (code) => {
    const body = signIpn({ svc_TransactionID: 'T1', svc_MerchantCode: code })
    await expectRefusal(body, 404, 'unknown svc_MerchantCode')
  },
)

it.each([
  '',
  'text/plain',
  'text/json',
  'application/xml',
  'multipart/form-data; boundary=x',
  'application/jsonp',
])('the content type %j is refused with 415', async (type) => {
  await expectRefusal(
    Buffer.from(text),
    415,
    'send application/json',
    type ? { 'content-type': type } : {},
  )
})
