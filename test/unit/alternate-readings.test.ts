import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { computeSecureHash, joinSignedValues } from '../../src/gateway/signature.ts'
import { judgeReading, type KnownReading } from '../../src/ipn/readings.ts'
import type { Arrival } from '../../src/ipn/types.ts'
import {
  PUBLISHED_PAYMENTS,
  PUBLISHED_QUERY,
  PUBLISHED_REFUND,
  PUBLISHED_REFUND_WITHOUT_RECEIVER,
  PUBLISHED_REFUNDS,
} from '../support/published.ts'
import { createReader } from '../support/receive.ts'
import { cutRequest, type Params, recut, type SignedRequest, sign } from '../support/recut.ts'
import { MERCHANT } from '../support/service.ts'

/** The hash joins values without names, so one hash is valid for many readings. Of one hash two are kept, one trusted. */

const receive = createReader()
const { 'a payment': PAYMENT = {}, 'a payment in part': PART = {} } = PUBLISHED_PAYMENTS

/** The reading as it reaches the database. */
async function readOne(params: Params): Promise<Arrival | undefined> {
  const { arrival } = await receive(JSON.stringify(params))
  return arrival && { ...arrival, address: '192.0.2.1' }
}

async function readGenuine(params: Params): Promise<Arrival> {
  const arrival = await readOne(sign(params))
  if (!arrival) throw new Error('the genuine notification was refused')
  return arrival
}

const isGiven = (params: Params, name: string) => (params[name] ?? '') !== ''
const cutsOf = (genuine: Params, id: string) =>
  recut(genuine).filter((one) => one.svc_MerchantCode === MERCHANT.merchantCode && isGiven(one, id))

/** What is kept of readings that come in this order: for each whether it is trusted, or undefined. */
function judgeInOrder(
  readings: readonly Arrival[],
  isOwn: (one: Arrival) => boolean = () => false,
) {
  const known: KnownReading[] = []
  return readings.map((one) => {
    const judged = judgeReading(one, known, isOwn(one))
    return judged && !judged.hint
  })
}

describe('a signed text cut at every boundary', () => {
  it.each([
    ['a payment', PAYMENT, 'svc_TransactionID', 80],
    ['a payment in part', PART, 'svc_TransactionID', 80],
    ...Object.entries(PUBLISHED_REFUNDS).map(
      ([what, refund]) => [what, refund, 'svc_RequestID', 60] as const,
    ),
  ] as const)(
    'of %s: two readings are kept, and the first in published form is trusted',
    async (_, params, id, least) => {
      const genuine = await readGenuine(params)
      expect(genuine).toMatchObject({ published: true, hint: false, origin: 'notification' })
      const cuts = cutsOf(params, id)
      expect(cuts.length).toBeGreaterThan(least)
      const readings: Arrival[] = []
      for (const cut of cuts) {
        const reading = await readOne(cut)
        if (reading) readings.push(reading)
      }
      expect(readings.length).toBeGreaterThan(least)
      for (const reading of readings) {
        expect(reading.signedKey).toBe(genuine.signedKey)
        expect(reading.fingerprint).not.toBe(genuine.fingerprint)
        expect(judgeInOrder([genuine, reading])).toEqual([true, false])
        // A reading in other members takes no place of the genuine one.
        expect(judgeInOrder([reading, genuine])).toEqual([reading.published, !reading.published])
        expect(judgeInOrder([reading, genuine, reading, genuine]).slice(2)).toEqual([
          reading.published,
          !reading.published,
        ])
      }
    },
  )

  it('is refused beyond two readings, and those that are known are not', async () => {
    const genuine = await readGenuine(PAYMENT)
    const published: Arrival[] = []
    for (const cut of cutsOf(PAYMENT, 'svc_TransactionID')) {
      const reading = await readOne(cut)
      if (reading?.published) published.push(reading)
    }
    const [second, ...more] = published
    if (!second) throw new Error('too few cuts')
    expect(more.length).toBeGreaterThan(60)
    const judged = judgeInOrder([genuine, second, ...more, genuine, second])
    expect(judged).toEqual([true, false, ...more.map(() => undefined), true, false])
  })

  it('of a member that no table lists is a hint, unless IPN_KNOWN_MEMBERS lists it', async () => {
    const body = JSON.stringify(sign({ ...PAYMENT, svc_BankCode: 'VCB' }))
    expect((await receive(body)).arrival).toMatchObject({ published: false, hint: true })
    const { arrival } = await createReader({ IPN_KNOWN_MEMBERS: 'BankCode' })(body)
    expect(arrival).toMatchObject({ published: true, hint: false })
  })
})

describe.each(Object.entries(PUBLISHED_REFUNDS))('the notification of %s of ours', (_, params) => {
  const isRefund = (one: Params) => one.svc_Command === 'REFUND'
  const isOwn = ({ notification: one }: Arrival) =>
    one.kind === 'refund' &&
    one.requestId === params.svc_RequestID &&
    one.paymentId === params.svc_PaymentID &&
    one.amount === params.svc_Amount

  it('is trusted whenever it comes, and no cut of it states the opposite', async () => {
    const genuine = await readGenuine(params)
    const { svc_ResponseCode: code } = params
    // No success of a failure, no failure of a success.
    const opposite = code === '0' ? /^-?[1-9]\d*$/ : /^0$/
    for (const cut of cutsOf(params, 'svc_RequestID').filter(isRefund)) {
      const reading = await readOne(cut)
      if (!reading) continue
      expect(judgeInOrder([reading, genuine], isOwn)[1]).toBe(true)
      expect(judgeInOrder([genuine, reading], isOwn)).toEqual([true, isOwn(reading)])
      if (isOwn(reading)) expect(reading.notification.code ?? '').not.toMatch(opposite)
    }
  })
})

/** The request id is in no hash of a request, unless `GATEWAY_REFUND_HASH_EXCLUDE` is `none`. */
function signRequest(params: Record<string, unknown>, heads: SignedRequest['heads']) {
  const rule = { prefix: 'svc', exclude: ['RequestID'] }
  const hash = computeSecureHash(params, MERCHANT.secret, rule)
  return { text: joinSignedValues(params, rule), hash, heads }
}

/** What comes before the merchant code, cut into members that are published. */
const QUERY_HEADS = {
  payment: [
    { svc_Command: 'QUERY_PT' },
    { svc_Amount: 'QUERY_PT' },
    { svc_Currency: 'QUERY_PT' },
    { svc_Locale: 'QUERY_PT' },
    { svc_Amount: 'QUERY', svc_Command: '_PT' },
  ],
  refund: [],
}
const REFUND_HEADS = {
  payment: [
    { svc_Amount: '10000REFUND' },
    { svc_Amount: '10000', svc_Currency: 'REFUND' },
    { svc_Amount: '10000', svc_Locale: 'REFUND' },
    { svc_Amount: '1', svc_Command: '0000REFUND' },
  ],
  refund: [{ svc_Amount: '10000', svc_Command: 'REFUND' }],
}

describe('the signed text of a request', () => {
  const WITHOUT = PUBLISHED_REFUND_WITHOUT_RECEIVER
  const PORTAL = { ...WITHOUT, svc_PaymentID: 'P-1' }

  it.each([
    ['QUERY_PT', 'payment', signRequest(PUBLISHED_QUERY, QUERY_HEADS), 'request'],
    ['REFUND', 'payment', signRequest(PUBLISHED_REFUND, REFUND_HEADS), 'request'],
    ['REFUND', 'refund', signRequest(PUBLISHED_REFUND, REFUND_HEADS), 'request'],
    ['REFUND without receiver', 'payment', signRequest(WITHOUT, REFUND_HEADS), 'request'],
    ['REFUND without receiver', 'refund', signRequest(WITHOUT, REFUND_HEADS), 'request'],
    // Only the account's payments tell whether it is one.
    ['REFUND of P-1', 'refund', signRequest(PORTAL, REFUND_HEADS), { paymentId: 'P-1' }],
  ] as const)(
    '%s, cut into the notification of a %s, is known as one',
    async (_, kind, request, origin) => {
      let stored = 0
      await fc.assert(
        fc.asyncProperty(cutRequest(kind, request, MERCHANT.merchantCode), async (params) => {
          const arrival = await readOne(params)
          if (!arrival) return
          stored += 1
          expect(arrival.origin).toEqual(origin)
        }),
        { numRuns: 500 },
      )
      expect(stored).toBeGreaterThan(250)
    },
  )
})

it('a text of the other kind is no notification of this one', async () => {
  const failure = {
    svc_Amount: '30',
    svc_Command: 'REFUND',
    svc_MerchantCode: MERCHANT.merchantCode,
    svc_PaymentID: '7',
    svc_RequestID: 'R-1',
    svc_ResponseCode: '33',
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
  expect(await readOne(cut)).toMatchObject({ verdict: 'verified', origin: 'request' })
  const [refund] = Object.values(PUBLISHED_REFUNDS)
  const { svc_Amount = '', svc_Command = '', ...rest } = sign(refund ?? {})
  const payment = { ...rest, svc_Amount: svc_Amount + svc_Command }
  expect(await readOne(payment)).toMatchObject({ verdict: 'verified', origin: 'request' })
})
