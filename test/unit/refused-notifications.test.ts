import { describe, expect, it, onTestFinished } from 'vitest'
import { OTHER, writeMerchantsFile } from '../support/api.ts'
import { createReader } from '../support/receive.ts'
import { MERCHANT, signIpn, toForm } from '../support/service.ts'

const GOOD = signIpn({ svc_TransactionID: 'T1', svc_OrderID: 'DH1', svc_Amount: 10_000 })
const TEXT = JSON.stringify(GOOD)

const receive = createReader()

async function expectRefused(body: string, why: RegExp | string, format: 'json' | 'form' = 'json') {
  const { receipt, arrival } = await receive(body, format)
  expect(receipt).toEqual({ verdict: 'malformed', why: expect.stringMatching(why) })
  expect(arrival).toBeUndefined()
}

describe('a body that cannot be parsed', () => {
  it.each([
    ['nothing', '', 'not valid JSON'],
    ['no JSON', 'svc_TransactionID=T1', 'not valid JSON'],
    ['half of it', TEXT.slice(0, -1), 'not valid JSON'],
    ['more after it', `${TEXT}{}`, 'not valid JSON'],
    ['a list', `[${TEXT}]`, 'not a JSON object'],
    ['a number', '1', 'not a JSON object'],
    ['null', 'null', 'not a JSON object'],
    ['nesting without end', `{"svc_ExtData":${'['.repeat(30_000)}`, 'more than 1000 values'],
    [
      'closed nesting',
      `${TEXT.slice(0, -1)},"x":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
      'more than 1000 values',
    ],
    ['a member twice', TEXT.replace('{', '{"svc_TransactionID":"T2",'), 'given twice'],
    ['__proto__', TEXT.replace('{', '{"__proto__":"x",'), '__proto__'],
    ['__proto__ as an object', TEXT.replace('{', '{"__proto__":{"a":1},'), '__proto__'],
    ['__proto__ in disguise', TEXT.replace('{', '{"\\u005f_proto__":null,'), '__proto__'],
    ['all in __proto__', `{"__proto__":${TEXT}}`, '__proto__'],
  ])('%s', async (_, body, why) => {
    await expectRefused(body, why)
  })

  it.each([
    ['a name twice', 'svc_TransactionID=T1&svc_TransactionID=T1', 'given twice'],
    ['a name twice in disguise', 'svc_TransactionID=T1&svc_%54ransactionID=T2', 'given twice'],
    ['__proto__', 'svc_TransactionID=T1&__proto__=x', '__proto__'],
    ['bytes that are not UTF-8', 'svc_TransactionID=T%ff', 'not UTF-8 text'],
    ['half a surrogate', 'svc_TransactionID=T%ed%a0%80', 'not UTF-8 text'],
    ['NUL', 'svc_TransactionID=T%00', 'svc_TransactionID holds control characters'],
    ['nothing', '', 'svc_TransactionID is missing'],
    ['JSON', TEXT, 'svc_TransactionID is missing'],
  ])('as a form, %s', async (_, body, why) => {
    await expectRefused(body, why, 'form')
  })

  it.each([64, 65])(
    'of %i members is read as far as its hash, if that is not too many',
    async (members) => {
      const more = Array.from({ length: members - Object.keys(GOOD).length }, (_, n) => [
        `note${n}`,
        'x',
      ])
      const body = { ...GOOD, ...Object.fromEntries(more) }
      for (const [text, format] of [
        [JSON.stringify(body), 'json'],
        [toForm(body), 'form'],
      ] as const) {
        if (members === 65) await expectRefused(text, /^more than 64 members$/, format)
        else expect((await receive(text, format)).receipt).toMatchObject({ verdict: 'stored' })
      }
    },
  )

  it.each([
    ['in a list', JSON.stringify({ ...GOOD, svc_ExtData: Array(1_001).fill(1) }), 'json'],
    ['in lists', JSON.stringify({ ...GOOD, svc_ExtData: Array(600).fill([]) }), 'json'],
    ['behind a text', JSON.stringify({ a: '"\\', b: Array(1_001).fill(1) }), 'json'],
    ['in objects', `{"a":${'{"b":'.repeat(1_001)}1${'}'.repeat(1_001)}}`, 'json'],
    ['however a name is repeated', `{${'"a":1,'.repeat(1_001)}"a":1}`, 'json'],
    ['in a form', 'a='.concat('&a='.repeat(1_001)), 'form'],
  ] as const)('of more than 1000 values, %s', async (_, body, format) => {
    await expectRefused(body, 'more than 1000 values', format)
  })

  it('of a thousand values at any depth is read', async () => {
    for (const value of [Array(900).fill(1), JSON.parse(`${'['.repeat(900)}${']'.repeat(900)}`)]) {
      const body = JSON.stringify({ ...GOOD, svc_ExtData: value })
      expect((await receive(body, 'json')).receipt).toMatchObject({ verdict: 'stored' })
    }
  })

  it.each([',', '[', '{', '&', '\\"', '{"a":[1,2]}'])(
    'of few values is read, however often %s stands in a text',
    async (sign) => {
      const members = { svc_TransactionID: 'T1', svc_OrderInfo: sign.repeat(1_001) }
      const body = { ...signIpn(members), svc_ExtData: { note: sign.repeat(1_001) } }
      const { receipt, arrival } = await receive(JSON.stringify(body), 'json')
      expect(receipt).toMatchObject({ verdict: 'stored' })
      expect(arrival).toMatchObject({ verdict: 'verified', transactionId: 'T1' })
      // A form whose sender leaves as it is what a form may leave.
      const form = toForm(signIpn(members)).replace(/%(2C|5B|7B)/g, decodeURIComponent)
      expect((await receive(form, 'form')).receipt).toMatchObject({ verdict: 'stored' })
    },
  )
})

describe('a member that the settings exclude from the hash', () => {
  const readWithout = async (exclude: string, changes: Record<string, unknown> = {}) => {
    const of = signIpn(
      { svc_TransactionID: 'T1', svc_OrderID: 'DH1', svc_Amount: 10_000, svc_Currency: 'VND' },
      { exclude: exclude.split(',') },
    )
    const reader = createReader({ IPN_HASH_EXCLUDE: exclude })
    const { arrival } = await reader(JSON.stringify({ ...of, ...changes }))
    return arrival
  }

  it('is not read, whatever anybody wrote there; what is signed still is', async () => {
    const exclude = 'TransAmount,ExtData,OrderID,Amount'
    for (const forged of [{}, { svc_OrderID: 'DH2', svc_Amount: 5 }, { svc_OrderID: true }]) {
      expect(await readWithout(exclude, forged)).toMatchObject({
        ...{ verdict: 'verified', documented: true, orderId: undefined, amount: undefined },
        ...{ transactionId: 'T1', currency: 'VND' },
      })
    }
  })

  it('leads to a query alone if it is the transaction id, which may be any other', async () => {
    const forged = await readWithout('TransactionID', { svc_TransactionID: 'T2' })
    expect(forged).toMatchObject({ verdict: 'verified', documented: false, transactionId: 'T2' })
    expect(await readWithout('OrderID')).toMatchObject({ documented: true, amount: '10000' })
  })
})

describe('the hash', () => {
  const { svc_SecureHash: hash, ...unsigned } = GOOD
  const refund = { svc_Command: 'REFUND', svc_RequestID: 'R1', svc_PaymentID: '7' }

  it.each([
    ['in lower case', GOOD],
    [
      'beside members that are not signed',
      { ...GOOD, svc_TransAmount: 5, svc_ExtData: {}, note: 'x' },
    ],
    ['of a refund, over its svc_RequestID', signIpn(refund, { exclude: [] })],
  ])('%s verifies', async (_, body) => {
    const { receipt, arrival } = await receive(JSON.stringify(body))
    expect(receipt).toEqual({ verdict: 'stored' })
    expect(arrival?.verdict).toBe('verified')
  })

  it.each([
    ['missing', unsigned, 'missing'],
    ['of another secret', signIpn({ svc_TransactionID: 'T1' }, { secret: 'other' }), 'wrong'],
    ['of other members', { ...GOOD, svc_OrderID: 'DH2' }, 'wrong'],
    ['over an object', { ...GOOD, svc_Extra: {} }, 'unverifiable'],
    [
      'over excluded members',
      signIpn({ svc_TransactionID: 'T1', svc_ExtData: 'x' }, { exclude: [] }),
      'wrong',
    ],
    [
      'of a refund, without its svc_RequestID',
      signIpn(refund, { exclude: ['RequestID'] }),
      'wrong',
    ],
  ])('%s is refused', async (_, body, verdict) => {
    const { receipt, arrival } = await receive(JSON.stringify(body))
    expect(receipt).toEqual({ verdict: 'bad_signature', why: `svc_SecureHash is ${verdict}` })
    expect(arrival).toBeUndefined()
  })

  it('of a form verifies over its decoded texts, and no others', async () => {
    const form = new URLSearchParams(toForm(GOOD))
    expect((await receive(form.toString(), 'form')).receipt).toMatchObject({ verdict: 'stored' })
    form.set('svc_OrderID', 'DH1 ')
    const { receipt } = await receive(form.toString(), 'form')
    expect(receipt).toEqual({ verdict: 'bad_signature', why: 'svc_SecureHash is wrong' })
  })
})

it('with several accounts a number is the text of a merchant code, and what is no text names none', async () => {
  const file = writeMerchantsFile([MERCHANT, { ...OTHER, merchantCode: '70123' }])
  onTestFinished(() => file.remove())
  const receiveOfSeveral = createReader({ MERCHANTS_FILE: file.path })
  const send = async (svc_MerchantCode: unknown) => {
    const body = { ...signIpn({ svc_TransactionID: 'T1' }), svc_MerchantCode }
    return await receiveOfSeveral(JSON.stringify(body))
  }
  const numbered = signIpn({ svc_TransactionID: 'T1', svc_MerchantCode: 70123 }, OTHER)
  const { arrival } = await receiveOfSeveral(JSON.stringify(numbered))
  expect(arrival).toMatchObject({ merchantCode: '70123', verdict: 'verified' })
  const malformed = (must: string) => ({
    receipt: { verdict: 'malformed', why: `svc_MerchantCode ${must}` },
  })
  for (const code of [undefined, null, '']) {
    expect(await send(code)).toMatchObject(malformed('is missing'))
  }
  for (const code of [true, [MERCHANT.merchantCode], {}]) {
    expect(await send(code)).toMatchObject(malformed('must be a string or a number'))
  }
})
