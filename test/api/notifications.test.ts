import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeEntry, startListingGateway } from '../support/listing-gateway.ts'
import { MERCHANT, postIpn, signIpn } from '../support/service.ts'
import { signMembers as sign } from '../support/sign-members.ts'
import { useRig } from '../support/use-started.ts'

/** What the gateway is answered and order systems see: a row for each verdict; test/unit has every member in all forms. */

const RECEIVED = { status: 200, answer: { respcode: 0, respmsg: 'received' } }
const rig = useRig({ settings: { ROLE: 'web' } })

const makePaid = (transactionId: string) => ({
  ...{ svc_TransactionID: transactionId, svc_OrderID: 'DH1', svc_MerchantTxnID: 'M1' },
  ...{ svc_Currency: 'VND', svc_Amount: 20_000_000, svc_ResponseCode: 0, svc_Version: '1' },
})

describe('the notification of a payment', () => {
  const PAID = {
    ...{ merchantCode: MERCHANT.merchantCode, orderId: 'DH1', merchantTxnId: 'M1' },
    ...{ currency: 'VND', state: 'paid', final: true, paidAmount: '20000000', ipnCount: 1 },
  }

  it.each<[string, unknown, object]>([
    ['svc_OrderID', 4711, { orderId: '4711' }],
    ['svc_MerchantTxnID', false, { merchantTxnId: 'false' }],
    ['svc_Currency', 'V\u0000D', { currency: null }],
    ['svc_MerchantCode', ['UFLIYL'], {}],
    ['svc_Command', 'NOTIFY', {}],
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

type Good = ReturnType<typeof signIpn>

type Refused = [
  what: string,
  body: (good: Good, text: string) => Parameters<typeof postIpn>[1],
  status: number,
  why: string,
  type?: string,
]
const other = (type: string): Refused => [
  `the content type ${type}`,
  (_, text) => Buffer.from(text),
  415,
  'send application/json',
  type,
]

it.each<Refused>([
  ['no JSON', (_, text) => text.slice(1), 400, 'not valid JSON'],
  [
    'no UTF-8',
    (_, text) => Buffer.from(text.replace('H', '\xff'), 'latin1'),
    400,
    'not UTF-8 text',
  ],
  ['no transaction id', () => sign({ svc_OrderID: 'DH1' }), 400, 'svc_TransactionID is missing'],
  ['no request id', () => sign({ svc_Command: 'REFUND' }), 400, 'svc_RequestID is missing'],
  ['no hash', ({ svc_SecureHash: _, ...rest }) => rest, 401, 'svc_SecureHash is missing'],
  ['a wrong hash', (good) => ({ ...good, svc_OrderID: 'DH2' }), 401, 'svc_SecureHash is wrong'],
  ['a hash over an object', (good) => ({ ...good, svc_New: {} }), 401, 'is unverifiable'],
  ['a foreign code', (good) => sign({ ...good, svc_MerchantCode: 'uflyil' }), 404, 'unknown svc_M'],
  ...['', 'text/plain', 'text/json', 'application/xml', 'application/jsonp'].map(other),
  other('multipart/form-data; boundary=x'),
])(
  'a notification that is refused for %s stores nothing, and makes nothing due',
  async (_, body, status, why, type = 'application/json') => {
    const id = randomUUID()
    const good = signIpn({ svc_TransactionID: id, svc_OrderID: 'DH1', svc_Amount: 10_000 })
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type }
    const answer = await postIpn(rig.service.url, body(good, JSON.stringify(good)), headers)
    expect(answer).toEqual({
      status,
      answer: { respcode: 1, respmsg: expect.stringContaining(why) },
    })
    const { sql } = rig.database
    expect(await sql`select from transactions where transaction_id = ${id}`).toHaveLength(0)
    expect(await sql`select from ipn_events where position(${id} in body) > 0`).toHaveLength(0)
  },
)
