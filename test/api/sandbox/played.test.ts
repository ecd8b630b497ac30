import { parse } from 'lossless-json'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { verifySecureHash } from '../../../src/gateway/signature.ts'
import { SHOP, useMerchant, useSandbox } from '../../support/sandbox.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PAYMENT = { id: 'P1', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }
const Params = z.record(z.string(), z.unknown())

async function start() {
  const { ipnUrl, received } = await useMerchant()
  const rig = await useSandbox({ ipnUrl, refundMs: 5 })
  return {
    rig,
    /** The notifications, once there are so many; each with a correct hash. */
    async notified(count: number) {
      await waitUntil(() => received.length >= count, { what: `${count} notifications` })
      return received.map((body) => {
        const params = Params.parse(parse(body))
        const exclude = params.svc_Command === 'REFUND' ? [] : ['TransAmount', 'ExtData']
        const rule = { prefix: 'svc', exclude }
        expect(verifySecureHash(params, [SHOP.secret], rule)).toBe('verified')
        return Params.parse(parse(body, undefined, String))
      })
    },
  }
}

it('a payment with a token, paid in part', async () => {
  const { rig, notified } = await start()
  const body = { payments: [PAYMENT], payToken: 'tok-1', transAmount: '40' }
  expect((await rig.control('POST', '/transactions', body)).status).toBe(201)
  expect(await notified(1)).toMatchObject([
    { svc_PayToken: 'tok-1', svc_TransAmount: '40', svc_Amount: '100' },
  ])
})

describe('refunds made before the payment is first seen', () => {
  it('move the money and are notified before the payment is', async () => {
    const { rig, notified } = await start()
    const portalRefunds = [
      { amount: '30', fee: '3' },
      { amount: '20', ipn: false },
    ]
    const answer = await rig.control('POST', '/transactions', {
      payments: [{ ...PAYMENT, portalRefunds }],
    })
    expect(await answer.json()).toMatchObject({ payments: [{ refundedAmount: '50' }] })
    expect(await notified(2)).toMatchObject([
      { svc_Command: 'REFUND', svc_Amount: '30', svc_Fee: '3', svc_PaymentID: 'P1' },
      { svc_Command: 'PAY' },
    ])
  })

  it('are refused when they exceed the payment, and nothing is made', async () => {
    const { rig } = await start()
    const payments = [{ ...PAYMENT, portalRefunds: [{ amount: '60' }, { amount: '41' }] }]
    const answer = await rig.control('POST', '/transactions', { transactionId: 'T1', payments })
    expect([answer.status, await answer.json()]).toEqual([
      409,
      { path: 'payments.0.portalRefunds', message: 'exceed the amount of the payment' },
    ])
    expect((await rig.control('GET', '/transactions/T1')).status).toBe(404)
  })
})

describe('notifications that contradict', () => {
  it('say of a payment what the test wants, signed', async () => {
    const { rig, notified } = await start()
    await rig.control('POST', '/transactions', { transactionId: 'T1', payments: [PAYMENT] })
    const fields = { OrderID: 'ANOTHER', Amount: 7, ResponseCode: 1, Currency: null, Locale: true }
    const again = await rig.control('POST', '/transactions/T1/ipn', { fields })
    expect(again.status).toBe(202)
    const [, second] = await notified(2)
    expect(second).toMatchObject({
      svc_TransactionID: 'T1',
      svc_OrderID: 'ANOTHER',
      svc_Amount: '7',
      svc_ResponseCode: '1',
      svc_Locale: true,
    })
    expect(second).not.toHaveProperty('svc_Currency')
  })

  it('say of a refund what the test wants, however it ended', async () => {
    const { rig, notified } = await start()
    await rig.control('POST', '/transactions', { payments: [PAYMENT], ipn: false })
    await rig.control('PUT', '/refund-mode', { fee: '12.5' })
    const made = await rig.control('POST', '/payments/P1/portal-refund', { amount: '10' })
    const { requestId } = z.object({ requestId: z.string() }).parse(await made.json())
    const contradicting = { code: 33, message: 'no such account', fields: { Amount: 11 } }
    const sent = await rig.control('POST', `/refunds/${requestId}/ipn`, contradicting)
    expect(sent.status).toBe(202)
    expect(await notified(2)).toMatchObject([
      { svc_ResponseCode: '0', svc_Fee: '12.5', svc_Amount: '10' },
      { svc_ResponseCode: '33', svc_ResponseMsg: 'no such account', svc_Amount: '11' },
    ])
    expect((await rig.control('POST', '/refunds/nobody/ipn', {})).status).toBe(404)
  })

  it.each([
    [{ fields: { ExtData: { a: 1 } } }, 'fields.ExtData'],
    [{ fields: { 'a b': 1 } }, 'fields.a b'],
    [{ fields: 7 }, 'fields'],
    [{ copies: 0 }, 'copies'],
  ])('%o names the invalid member', async (body, path) => {
    const { rig } = await start()
    await rig.control('POST', '/transactions', { transactionId: 'T1', payments: [], ipn: false })
    const answer = await rig.control('POST', '/transactions/T1/ipn', body)
    expect([answer.status, await answer.json()]).toMatchObject([422, { path }])
  })
})
