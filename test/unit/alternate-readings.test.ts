import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { choosePlace, foldReadings } from '../../src/ipn/readings.ts'
import type { ReceivedNotification } from '../../src/ipn/store.ts'
import {
  PUBLISHED_PAYMENTS,
  PUBLISHED_QUERY,
  PUBLISHED_REFUND,
  PUBLISHED_REFUND_WITHOUT_RECEIVER,
  PUBLISHED_REFUNDS,
} from '../support/published.ts'
import { createReader } from '../support/receive.ts'
import { cutRequest, type Params, recut, sign, signRequest } from '../support/recut.ts'
import { MERCHANT } from '../support/service.ts'

/** The hash joins values without names, so one hash is valid for many readings. test/api/ipn/readings stores them. */

const receive = createReader()
const { 'a payment': PAYMENT = {} } = PUBLISHED_PAYMENTS
const { 'a refund': REFUND = {} } = PUBLISHED_REFUNDS

/** The reading as it reaches the database. */
async function readOne(params: Params): Promise<ReceivedNotification | undefined> {
  const { arrival } = await receive(JSON.stringify(params))
  return arrival && { ...arrival, address: '192.0.2.1' }
}

async function readGenuine(params: Params): Promise<ReceivedNotification> {
  const arrival = await readOne(sign(params))
  if (!arrival) throw new Error('the genuine notification was refused')
  return arrival
}

const cutsOf = (genuine: Params) =>
  recut(genuine).filter((one) => one.svc_MerchantCode === MERCHANT.merchantCode)

describe('a signed text', () => {
  it.each(Object.entries({ ...PUBLISHED_PAYMENTS, ...PUBLISHED_REFUNDS }))(
    'of %s is the same however it is cut, and the genuine reading is documented',
    async (_, params) => {
      const genuine = await readGenuine(params)
      expect(genuine).toMatchObject({ documented: true, requestOf: undefined })
      let read = 0
      for (const cut of cutsOf(params)) {
        const reading = await readOne(cut)
        if (!reading) continue
        read += 1
        expect(reading.textHash).toBe(genuine.textHash)
      }
      expect(read).toBeGreaterThan(60)
    },
  )

  it('is the same under the secret of before, with other unsigned members, and in other types', async () => {
    const genuine = await readGenuine(PAYMENT)
    const old = createReader({ GATEWAY_SECRET_PREVIOUS: 'the secret of before, which is long' })
    const rule = { prefix: 'svc', exclude: [] }
    const hash = computeSecureHash(PAYMENT, 'the secret of before, which is long', rule)
    const copies = [
      JSON.stringify({ ...PAYMENT, svc_SecureHash: hash }),
      JSON.stringify({ ...sign(PAYMENT), svc_TransAmount: '1', note: 'x', svc_PayToken: null }),
      JSON.stringify({ ...sign(PAYMENT), svc_Amount: [20_000_000], svc_OrderID: ['DH1'] }),
    ]
    for (const copy of copies) {
      const { arrival } = await old(copy)
      if (!arrival) throw new Error('a copy was refused')
      const batch = [genuine, { ...arrival, address: '192.0.2.1' }]
      expect(foldReadings(batch)).toMatchObject([{ items: [0, 1] }])
    }
  })

  it('that did not verify is another one, and another one with every other content', async () => {
    const off = createReader({ IPN_SIGNATURE: 'off' })
    const forge = async (params: Params) => {
      const { arrival } = await off(JSON.stringify({ ...params, svc_SecureHash: 'f'.repeat(64) }))
      return arrival?.textHash
    }
    const [cut] = cutsOf(PAYMENT)
    const hashes = [await forge(PAYMENT), await forge(cut ?? {})]
    expect(new Set([...hashes, (await readGenuine(PAYMENT)).textHash]).size).toBe(3)
  })
})

describe('the documented form', () => {
  it.each([
    ['a member that no table lists', { ...PAYMENT, svc_BankCode: 'VCB' }],
    ['such a member of a refund', { ...REFUND, svc_BankCode: 'VCB' }],
  ])('does not hold %s, unless IPN_KNOWN_MEMBERS lists it', async (_, params) => {
    const body = JSON.stringify(sign(params))
    expect((await receive(body)).arrival).toMatchObject({ documented: false })
    const { arrival } = await createReader({ IPN_KNOWN_MEMBERS: 'BankCode' })(body)
    expect(arrival).toMatchObject({ documented: true, code: '0' })
  })

  it('does not hold a payment that a listed member hides in front of a refund', async () => {
    const hidden = { ...REFUND, svc_BankCode: `PAYVND${MERCHANT.merchantCode}` }
    const reader = createReader({ IPN_KNOWN_MEMBERS: 'BankCode' })
    const { arrival } = await reader(JSON.stringify(sign(hidden)))
    expect(arrival).toMatchObject({ documented: false, code: undefined })
  })
})

describe('the result of a refund', () => {
  const states = async (more: Params) => (await readGenuine({ ...REFUND, ...more })).code

  it.each<[string, Params, string | undefined]>([
    ['is its code', { svc_ResponseCode: '33', svc_ResponseMsg: 'Failed' }, '33'],
    ['is not fixed by a value in front of the code', { svc_RequestIDx: '3' }, undefined],
    ['is not fixed by a digit behind the code', { svc_ResponseMsg: '0 left' }, undefined],
    [
      'is not the version, which stands alone behind the request id of a request',
      { svc_ResponseMsg: '', svc_TransactionID: '', svc_ResponseCode: '1', svc_Version: '' },
      undefined,
    ],
    ['is none with another code than gateways write', { svc_ResponseCode: '05' }, undefined],
  ])('%s', async (_, more, code) => {
    expect(await states(more)).toBe(code)
  })

  it.each(Object.entries(PUBLISHED_REFUNDS))(
    'of %s is stated by no cut of it with its refund, payment and amount otherwise',
    async (_, params) => {
      const genuine = await readGenuine(params)
      if (genuine.kind !== 'refund') throw new Error('it is the notification of a refund')
      const { requestId, paymentId, amount, code } = genuine
      for (const cut of cutsOf(params)) {
        const reading = await readOne(cut)
        if (reading?.kind !== 'refund') continue
        const isOwn =
          reading.requestId === requestId &&
          reading.paymentId === paymentId &&
          reading.amount === amount
        if (isOwn) expect([undefined, code]).toContain(reading.code)
      }
    },
  )
})

it('a notification takes the first free place for it, or that of its own meaning', () => {
  const stored = (taken: number[], same: number | null = null, isOwn = false) => ({
    ...{ taken, same, isOwn },
    isRequest: false,
  })
  const documented = { documented: true, code: '0' }
  const odd = { documented: false, code: undefined }
  expect(choosePlace(documented, stored([]))).toBe(1)
  expect(choosePlace(odd, stored([]))).toBe(2)
  expect(choosePlace(documented, stored([1]))).toBe(2)
  // What an odd copy means counts as that: the documented one that follows has the first place free.
  expect(choosePlace(documented, stored([2], 2))).toBe(1)
  expect(choosePlace(odd, stored([1], 1))).toBe(1)
  expect(choosePlace(documented, stored([1, 2], 2))).toBe(2)
  expect(choosePlace(documented, stored([1, 2]))).toBe(0)
  expect(choosePlace(documented, stored([1, 2], null, true))).toBe(3)
  expect(choosePlace(odd, stored([1, 2, 3], null, true))).toBe(4)
  expect(choosePlace(documented, stored([1, 2, 3], null, true))).toBe(0)
})

describe('the signed text of a request', () => {
  const WITHOUT = PUBLISHED_REFUND_WITHOUT_RECEIVER
  const PORTAL = { ...WITHOUT, svc_PaymentID: 'P-1' }

  const requestOf = (paymentId?: string) => ({
    documented: paymentId !== undefined,
    requestOf: paymentId,
  })

  it.each([
    ['QUERY_PT', 'payment', signRequest(PUBLISHED_QUERY), requestOf()],
    ['REFUND', 'payment', signRequest(PUBLISHED_REFUND), requestOf()],
    ['REFUND', 'refund', signRequest(PUBLISHED_REFUND), requestOf()],
    ['REFUND without receiver', 'payment', signRequest(WITHOUT), requestOf()],
    ['REFUND without receiver', 'refund', signRequest(WITHOUT), requestOf()],
    // Only the account's payments tell whether it is one.
    ['REFUND of P-1', 'refund', signRequest(PORTAL), requestOf('P-1')],
  ] as const)(
    '%s, cut into the notification of a %s, is known as one',
    async (_, kind, request, known) => {
      let stored = 0
      const cuts = fc.sample(cutRequest(kind, request, MERCHANT.merchantCode), 500)
      for (const params of cuts) {
        const arrival = await readOne(params)
        if (!arrival) continue
        stored += 1
        expect([params, arrival]).toMatchObject([params, known])
      }
      expect(stored).toBeGreaterThan(250)
    },
  )
})

it('a text of the other kind is not documented as one of this', async () => {
  const failure = {
    svc_Amount: '30',
    svc_Command: 'REFUND',
    svc_MerchantCode: MERCHANT.merchantCode,
    svc_PaymentID: '7',
    svc_RequestID: 'R-1',
    svc_ResponseCode: '33',
    svc_ResponseMsg: 'Failed',
  }
  const written = Object.values(failure).join('')
  const paid = sign({ ...PAYMENT, svc_OrderInfo: written })
  const [before = '', after = ''] = Object.keys(PAYMENT)
    .sort()
    .map((name) => paid[name])
    .join('')
    .split(written)
  const hash = paid.svc_SecureHash ?? ''
  const cut = { ...failure, svc_Aa: before, svc_Version: after, svc_SecureHash: hash }
  expect(await readOne(cut)).toMatchObject({
    ...{ verdict: 'verified', documented: false, code: undefined },
  })
  const [refund] = Object.values(PUBLISHED_REFUNDS)
  const { svc_Amount = '', svc_Command = '', ...rest } = sign(refund ?? {})
  const payment = { ...rest, svc_Amount: svc_Amount + svc_Command }
  expect(await readOne(payment)).toMatchObject({ verdict: 'verified', documented: false })
})
