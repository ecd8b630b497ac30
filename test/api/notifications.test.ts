import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { MERCHANT, postIpn, signIpn, toForm } from '../support/service.ts'
import { signMembers as sign } from '../support/sign-members.ts'
import { useRig } from '../support/use-started.ts'

/** What the gateway is answered and order systems see: a row for each member and verdict; test/unit has all forms. */

const RECEIVED = { status: 200, answer: { respcode: 0, respmsg: 'received' } }

const makePaid = (transactionId: string) => ({
  svc_TransactionID: transactionId,
  svc_OrderID: 'DH1',
  svc_MerchantTxnID: 'M1',
  svc_Currency: 'VND',
  svc_Amount: 20_000_000,
  svc_ResponseCode: 0,
  svc_ResponseMsg: 'Success',
  svc_Version: '1',
})

describe('the notification of a payment', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })
  const PAID = {
    merchantCode: MERCHANT.merchantCode,
    orderId: 'DH1',
    merchantTxnId: 'M1',
    currency: 'VND',
    state: 'paid',
    final: true,
    paidAmount: '20000000',
    ipnCount: 1,
  }

  it.each<[string, unknown, object]>([
    ['svc_OrderID', 'DH1', {}],
    ['svc_OrderID', ['DH1'], {}],
    ['svc_OrderID', 4711, { orderId: '4711' }],
    ['svc_MerchantTxnID', false, { merchantTxnId: 'false' }],
    ['svc_Currency', ['VND'], {}],
    ['svc_Currency', 'V\u0000D', { currency: null }],
    ['svc_MerchantCode', ['UFLIYL'], {}],
    ['svc_Command', ['PAY'], {}],
    ['svc_Command', 'NOTIFY', {}],
    ['svc_Amount', 'many', {}],
    ['svc_ResponseCode', 9, {}],
    ['svc_ResponseMsg', ['a'], {}],
    ['svc_OrderInfo', 7, {}],
    ['svc_Locale', [], {}],
    ['svc_Version', 1.5, {}],
    ['svc_PayToken', true, {}],
    ['svc_TransAmount', 5, {}],
    ['svc_ExtData', { a: { b: [1] } }, {}],
  ])(
    'with %s %j is taken: a member is read as the text that is signed, or left out by itself',
    async (name, value, change) => {
      const id = randomUUID()
      const sent = sign({ ...makePaid(id), [name]: value })
      expect(await postIpn(rig.service.url, sent)).toEqual(RECEIVED)
      const gateway = await startListingGateway(rig)
      gateway.list(makeEntry(`P-${id}`, { amount: 20_000_000 }))
      await gateway.sync(id)
      expect(await rig.transaction(id)).toMatchObject({ ...PAID, transactionId: id, ...change })
    },
  )

  it('with a number as its transaction id, and a hash in upper case, has the text of the number', async () => {
    const id = String(Date.now())
    const signed = sign(makePaid(id))
    const upper = { ...signed, svc_SecureHash: String(signed.svc_SecureHash).toUpperCase() }
    const body = JSON.stringify(upper).replace(`"${id}"`, id)
    expect(await postIpn(rig.service.url, body)).toEqual(RECEIVED)
    expect(await rig.transaction(id)).toMatchObject({ orderId: 'DH1', ipnCount: 1 })
  })

  it('repeated with its values in other types has the values of either', async () => {
    const id = randomUUID()
    const odd = { svc_OrderID: ['DH1'], svc_Currency: ['VND'] }
    for (const sent of [sign({ ...makePaid(id), ...odd }), sign(makePaid(id))]) {
      expect(await postIpn(rig.service.url, sent)).toEqual(RECEIVED)
    }
    const shown = { orderId: 'DH1', currency: 'VND', ipnCount: 2 }
    expect(await rig.transaction(id)).toMatchObject(shown)
    const [stored] = await rig.database.sql`
      select currency, deliveries from ipn_events where transaction_id = ${id}`
    expect(stored).toEqual({ currency: 'VND', deliveries: 2 })
  })
})

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const JSON_TYPE = { 'content-type': 'application/json' }

describe('a notification that is refused', () => {
  const rig = useRig({ settings: { ROLE: 'web' } })

  type Refused = {
    body: (good: ReturnType<typeof signIpn>, text: string) => Parameters<typeof postIpn>[1]
    headers?: Record<string, string>
    status: number
    why: string | RegExp
  }
  const of = (type: string): Refused => ({
    body: (_, text) => Buffer.from(text),
    headers: type === '' ? {} : { 'content-type': type },
    status: 415,
    why: 'send application/json',
  })

  it.each<[string, Refused]>([
    ['no JSON', { body: (_, text) => text.slice(1), status: 400, why: 'not valid JSON' }],
    ['NUL', { body: (_, text) => `${text}\0`, status: 400, why: 'not UTF-8 text' }],
    [
      'bytes that are not UTF-8',
      {
        body: (_, text) => Buffer.from(text.replace('DH1', 'DH\xff'), 'latin1'),
        status: 400,
        why: 'not UTF-8 text',
      },
    ],
    [
      'a form that names a member twice',
      {
        body: (good) => `${toForm(good)}&svc_OrderID=DH1`,
        headers: FORM,
        status: 400,
        why: 'given twice',
      },
    ],
    [
      'more than 64 members',
      {
        body: (good) => ({
          ...good,
          ...Object.fromEntries(Array.from(Array(60), (_, n) => [n, n])),
        }),
        status: 400,
        why: /^more than 64 members$/,
      },
    ],
    [
      'no transaction id',
      {
        body: ({ svc_TransactionID: id }) => sign({ svc_TransactionID: [id] }),
        status: 400,
        why: /^svc_TransactionID must be a string or a number$/,
      },
    ],
    [
      'a refund without its request id',
      {
        body: ({ svc_TransactionID: id }) => sign({ svc_Command: 'REFUND', svc_TransactionID: id }),
        status: 400,
        why: 'svc_RequestID is missing',
      },
    ],
    [
      'no hash',
      {
        body: ({ svc_SecureHash: _, ...rest }) => rest,
        status: 401,
        why: 'svc_SecureHash is missing',
      },
    ],
    [
      'the hash of another message',
      {
        body: (good) => ({ ...good, svc_OrderID: 'DH2' }),
        status: 401,
        why: 'svc_SecureHash is wrong',
      },
    ],
    [
      'a hash over an object',
      {
        body: (good) => ({ ...good, svc_New: {} }),
        status: 401,
        why: 'svc_SecureHash is unverifiable',
      },
    ],
    [
      'the code of no account',
      {
        body: ({ svc_TransactionID: id }) =>
          sign({ svc_TransactionID: id, svc_MerchantCode: 'uflyil' }),
        status: 404,
        why: 'unknown svc_MerchantCode',
      },
    ],
    ['no content type', of('')],
    ['text/plain', of('text/plain')],
    ['text/json', of('text/json')],
    ['application/xml', of('application/xml')],
    ['multipart/form-data', of('multipart/form-data; boundary=x')],
    ['application/jsonp', of('application/jsonp')],
  ])('for %s stores nothing, and makes nothing due', async (_, { body, headers, status, why }) => {
    const id = randomUUID()
    const good = signIpn({ svc_TransactionID: id, svc_OrderID: 'DH1', svc_Amount: 10_000 })
    const sent = body(good, JSON.stringify(good))
    expect(await postIpn(rig.service.url, sent, headers ?? JSON_TYPE)).toEqual({
      status,
      answer: { respcode: 1, respmsg: expect.stringMatching(why) },
    })
    const { sql } = rig.database
    expect(await sql`select from transactions where transaction_id = ${id}`).toHaveLength(0)
    expect(await sql`select from ipn_events where position(${id} in body) > 0`).toHaveLength(0)
    expect((await rig.api('/healthz')).status).toBe(200)
  })
})
