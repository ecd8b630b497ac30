import { createHash, createHmac } from 'node:crypto'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { signMessage, verifyMessage } from '../../../src/cli/sign.ts'
import { MERCHANT } from '../../support/service.ts'

const { secret: SECRET } = MERCHANT
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Values in the order of the names they are signed by, written out by hand. */
const QUERY = {
  svc_Command: 'QUERY_PT',
  svc_MerchantCode: 'UFLIYL',
  svc_TransactionID: 'T 1+ệ',
  svc_Version: '1',
}
const QUERY_TEXT = 'QUERY_PTUFLIYLT 1+ệ1'
const REFUND =
  '"svc_Amount":10000.50,"svc_Command":"REFUND","svc_MerchantCode":"UFLIYL","svc_PaymentID":"7","svc_RequestID":"R1","svc_Version":"1"'
const IPN =
  '"svc_Amount":10000,"svc_Command":"PAY","svc_ExtData":"e","svc_MerchantCode":"UFLIYL","svc_TransAmount":5,"svc_TransactionID":"T1"'

type Run = { env?: Record<string, string>; options?: Parameters<typeof verifyMessage>[1] }

async function check(body: string, { env = { SIGNING_SECRET: SECRET }, options = {} }: Run = {}) {
  const message = { name: 'cli', input: Readable.from([body]), env }
  const { value, text } = await verifyMessage(message, options)
  const { valid } = value
  for (const [name, value] of Object.entries(env)) {
    if (name.includes('SECRET')) expect(text).not.toContain(value.trim())
  }
  return {
    valid,
    text,
    mistakes: [...text.matchAll(/^The hash was computed (.*)\.$/gm)].map(([, mistake]) => mistake),
  }
}
const json = (members: string, hash: string) =>
  `{${members},"svc_SecureHash":${JSON.stringify(hash)}}`
const query = (hash: string) => JSON.stringify({ ...QUERY, svc_SecureHash: hash })

describe('a right hash is valid', () => {
  it.each([
    ['of a query', query(sha256(QUERY_TEXT + SECRET))],
    [
      'of a refund request, without its request id',
      json(REFUND, sha256(`10000.50REFUNDUFLIYL71${SECRET}`)),
    ],
    [
      "of a refund's notification, with it",
      json(`${REFUND},"svc_ResponseCode":0`, sha256(`10000.50REFUNDUFLIYL7R101${SECRET}`)),
    ],
    ["of a payment's notification", json(IPN, sha256(`10000PAYUFLIYLT1${SECRET}`))],
  ])('%s', async (_, body) => {
    expect(await check(body)).toMatchObject({ valid: true, mistakes: [] })
  })

  it('of a form', async () => {
    const form = new URLSearchParams({ ...QUERY, svc_SecureHash: sha256(QUERY_TEXT + SECRET) })
    expect((await check(`${form}\n`)).valid).toBe(true)
  })

  it('under a rule given by options', async () => {
    const body = json(REFUND, sha256(`10000.50REFUNDUFLIYL7R11${SECRET}`))
    expect((await check(body)).valid).toBe(false)
    expect((await check(body, { options: { exclude: [] } })).valid).toBe(true)
    expect((await check(body, { options: { as: 'refund-ipn' } })).valid).toBe(true)
    const other = body.replaceAll('svc_', 'vnx_')
    expect((await check(other, { options: { exclude: [], prefix: 'vnx' } })).valid).toBe(true)
  })

  it("with the secret of the configured account that the message names, or the demo's", async () => {
    const env = { GATEWAY_MERCHANT_CODE: 'UFLIYL', GATEWAY_SECRET: SECRET }
    expect((await check(query(sha256(QUERY_TEXT + SECRET)), { env })).valid).toBe(true)
    const demo = '"svc_Command":"QUERY_PT","svc_MerchantCode":"DEMO"'
    const hash = sha256('QUERY_PTDEMOdemo-secret-of-the-sandbox')
    expect((await check(json(demo, hash), { env: {} })).valid).toBe(true)
  })
})

const OTHERWISE = ', although this kind of message excludes it'
const JOINED = 'svc_Amount=10000&svc_Command=PAY&svc_MerchantCode=UFLIYL&svc_TransactionID=T1'

describe('a wrong hash is explained by', () => {
  it.each([
    [REFUND, '10000.50REFUNDUFLIYL7R11$', `with svc_RequestID in the hash${OTHERWISE}`],
    [IPN, '10000PAYUFLIYL5T1$', `with svc_TransAmount in the hash${OTHERWISE}`],
    [
      IPN,
      '10000PAYUFLIYL$',
      'without svc_TransactionID, although this kind of message includes it in the hash',
    ],
    [
      REFUND,
      '10000.5REFUNDUFLIYL71$',
      'with every number in its shortest form (10000.50 as 10000.5)',
    ],
    [IPN, '10000.00PAYUFLIYLT1$', 'with numbers written with two decimals (10000 as 10000.00)'],
    [IPN, '10000PAYUFLIYLT11$', 'with svc_Version "1", which is missing from the body'],
    [`"note":"x",${IPN}`, 'x10000PAYUFLIYLT1$', 'with the parameters that do not start with svc_'],
    [IPN, '10000PAYUFLIYLT1$\n', 'with a line break after the secret'],
    [IPN, '10000PAYUFLIYLT1', 'without any secret'],
    [
      IPN,
      '10000|PAY|UFLIYL|T1|$',
      'with values joined by "|", followed by one more separator and the secret',
    ],
    [IPN, `${JOINED}$`, 'with name=value pairs joined by "&", followed by the secret'],
    [IPN, '$10000PAYUFLIYLT1', 'with values without separator, preceded by the secret'],
  ])('%s hashed as %j: %s', async (members, hashed, what) => {
    const hash = sha256(hashed.replace('$', () => SECRET))
    expect(await check(json(members, hash))).toMatchObject({ valid: false, mistakes: [what] })
  })

  it.each([
    [encodeURIComponent('T 1+ệ'), 'with the values as an address carries them, before decoding'],
    ['T 1 ệ', 'with every "+" of a form decoded to a space'],
    ['T 1+ệ'.normalize('NFD'), 'with strings in Unicode form NFD'],
  ])('the transaction id hashed as %s: %s', async (id, what) => {
    const hash = sha256(`QUERY_PTUFLIYL${id}1${SECRET}`)
    expect((await check(query(hash))).mistakes).toEqual([what])
  })

  it('the undecoded values of a form', async () => {
    const form = new URLSearchParams({
      ...QUERY,
      svc_SecureHash: sha256(`QUERY_PTUFLIYLT+1%2B%E1%BB%871${SECRET}`),
    })
    expect((await check(form.toString())).mistakes).toEqual([
      'with the values as a form carries them, before decoding',
    ])
  })

  it('HMAC', async () => {
    const hash = createHmac('sha256', SECRET).update(QUERY_TEXT).digest('hex')
    expect((await check(query(hash))).mistakes).toEqual([
      'with values without separator, as HMAC-SHA256 with the secret as its key',
    ])
  })

  it.each([`${SECRET}\n`, ` ${SECRET}`])('white space around the secret: %j', async (padded) => {
    const { mistakes } = await check(query(sha256(QUERY_TEXT + SECRET)), {
      env: { SIGNING_SECRET: padded },
    })
    expect(mistakes).toEqual(['with the secret without the white space around it'])
  })

  it('the previous secret, or that of another account', async () => {
    const env = {
      GATEWAY_MERCHANT_CODE: 'UFLIYL',
      GATEWAY_SECRET: SECRET,
      GATEWAY_SECRET_PREVIOUS: 'old-secret',
    }
    expect((await check(query(sha256(`${QUERY_TEXT}old-secret`)), { env })).mistakes).toEqual([
      'with the previous secret, which is accepted on notifications only',
    ])
    const both = { ...env, SIGNING_SECRET: 'new-secret' }
    expect((await check(query(sha256(QUERY_TEXT + SECRET)), { env: both })).mistakes).toEqual([
      'with the secret configured for the account UFLIYL',
    ])
  })

  it('both hashes, where two mistakes come together', async () => {
    const hash = sha256(`10000.5REFUNDUFLIYL7R11${SECRET}`)
    const { mistakes, text } = await check(json(REFUND, hash))
    expect(mistakes).toEqual([])
    expect(text).toContain('No common mistake explains this hash')
    expect(text).toContain(`hexadecimal):\n  ${sha256(`10000.50REFUNDUFLIYL71${SECRET}`)}\n`)
    expect(text).toContain(`svc_SecureHash of the message:\n  ${hash}\n`)
  })

  it.each([
    ['nothing but the secret', sha256(`${QUERY_TEXT}another`), /most likely the secret is wrong/],
    ['no hash at all', 'hello', /is not what SHA-256 gives/],
    ['none', '', /missing or empty/],
  ])('%s', async (_, hash, words) => {
    const { valid, text } = await check(query(hash))
    expect(valid).toBe(false)
    expect(text).toMatch(words)
  })

  it('an object that no rule covers, and how to leave it out', async () => {
    const body = json('"svc_Command":"QUERY_PT","svc_Extra":{"a":1}', sha256(`QUERY_PT${SECRET}`))
    const { valid, text, mistakes } = await check(body)
    expect({ valid, mistakes }).toEqual({
      valid: false,
      mistakes: ['without svc_Extra, although this kind of message includes it in the hash'],
    })
    expect(text).toContain('--exclude Extra')
  })
})

describe('the explanation', () => {
  const explain = async (body: string) =>
    (
      await signMessage(
        { name: 'cli', input: Readable.from([body]), env: { SIGNING_SECRET: SECRET } },
        {},
      )
    ).text

  it('shows what is left out, and no control characters', async () => {
    const text = await explain(`{${IPN},"svc_B":"x\\u001by","note":1}`)
    expect(text).toMatch(/svc_B +x\?y\n/)
    expect(text).toContain('Left out: svc_ExtData, svc_TransAmount, note\n')
  })

  it('contains no secret, not even one that occurs in the message', async () => {
    const text = await explain(`{"svc_Command":"PAY","svc_OrderInfo":"my key is ${SECRET}"}`)
    expect(text).toContain('my key is <secret>')
    expect(text).not.toContain(SECRET)
  })
})
