import { parse } from 'lossless-json'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { verifySecureHash } from '../../../src/gateway/signature.ts'
import {
  type Merchant,
  type SandboxRig,
  SHOP,
  useMerchant,
  useSandbox,
} from '../../support/sandbox.ts'

let sandbox: SandboxRig
let merchant: Merchant

beforeEach(async () => {
  merchant = await useMerchant()
  sandbox = await useSandbox({ ipnUrl: merchant.ipnUrl, ipnRetryMs: [5, 10], refundMs: 5 })
})

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })
const control = (method: string, path: string, body: unknown) => sandbox.control(method, path, body)
const PAYMENT = { id: 'P1', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }

const makeTransaction = (transactionId: string, more: object = {}) =>
  control('POST', '/transactions', {
    transactionId,
    orderId: 'DH1',
    payments: [{ amount: '10000.50', paymentMethod: 'ATM', status: 'SUCCESS' }],
    ...more,
  })

const Notice = z.record(z.string(), z.unknown())

function verify(notice: Record<string, unknown>, changes: object = {}): string {
  const exclude = notice.svc_Command === 'REFUND' ? [] : ['TransAmount', 'ExtData']
  return verifySecureHash({ ...notice, ...changes }, [SHOP.secret], { prefix: 'svc', exclude })
}

/** The notifications, once there are so many: numbers as text, each with a correct hash. */
async function receive(count: number) {
  const { received } = merchant
  await eventually(() => expect(received).toHaveLength(count))
  return received.map((body) => {
    expect(verify(Notice.parse(parse(body)))).toBe('verified')
    return Notice.parse(parse(body, undefined, String))
  })
}

const expectDeliveries = (...entries: object[]) =>
  eventually(async () => expect(await sandbox.readCalls('ipn')).toMatchObject(entries))

describe('a payment notification', () => {
  it('carries the documented fields, the digits of the amount and a hash that verifies', async () => {
    await makeTransaction('T1', { extData: { shop: 'H1' } })
    expect(await receive(1)).toMatchObject([
      {
        svc_MerchantCode: 'UFLIYL',
        svc_Command: 'PAY',
        svc_TransactionID: 'T1',
        svc_OrderID: 'DH1',
        svc_MerchantTxnID: 'T-T1',
        svc_Currency: 'VND',
        svc_Locale: 'vi',
        svc_Version: '1',
        svc_ResponseMsg: 'Success',
        svc_ExtData: { shop: 'H1' },
      },
    ])
    expect(merchant.received[0]).toContain('"svc_Amount":10000.50,')
    expect(verify(Notice.parse(parse(merchant.received[0] ?? '')), { svc_Amount: 1 })).toBe('wrong')
  })

  it('carries the amount of the order, a token, and what was paid without signing it', async () => {
    await makeTransaction('T1', { amount: '250000', transAmount: '1000.50', payToken: 'tok-1' })
    expect(await receive(1)).toMatchObject([
      { svc_Amount: '250000', svc_TransAmount: '1000.50', svc_PayToken: 'tok-1' },
    ])
    const notice = Notice.parse(parse(merchant.received[0] ?? ''))
    expect(verify(notice, { svc_TransAmount: 1 })).toBe('verified')
  })

  it.each([
    ['SUCCESS', '0'],
    ['FAILED', '1'],
    ['PROCESSING', '99'],
  ])('of a payment that is %s carries code %s', async (status, code) => {
    await makeTransaction('T1', { payments: [{ amount: '1', paymentMethod: 'QR', status }] })
    expect(await receive(1)).toMatchObject([{ svc_ResponseCode: code }])
  })

  it('can be omitted when a transaction is made, and requested with a change', async () => {
    await makeTransaction('QUIET', { payments: [{ ...PAYMENT, status: 'PROCESSING' }], ipn: false })
    await control('PATCH', '/payments/P1', { amount: '2' })
    await control('PATCH', '/payments/P1?ipn=true', { status: 'SUCCESS' })
    expect(await receive(1)).toMatchObject([{ svc_TransactionID: 'QUIET', svc_Amount: '2' }])
  })

  it('is sent in the requested number of identical copies, also when sent again', async () => {
    await makeTransaction('T1', { ipn: { copies: 20 } })
    await receive(20)
    await control('POST', '/transactions/T1/ipn', { copies: 5 })
    await receive(25)
    expect(new Set(merchant.received).size).toBe(1)
  })

  it('arrives out of order when shuffled', async () => {
    const made = Array.from({ length: 12 }, (_, index) => `T${index}`)
    for (const id of made) await makeTransaction(id, { ipn: false })
    const plan = { delayMs: 200, shuffle: true }
    await Promise.all(made.map((id) => control('POST', `/transactions/${id}/ipn`, plan)))
    const arrived = (await receive(12)).map((notice) => notice.svc_TransactionID)
    expect(arrived).not.toEqual(made)
    expect([...arrived].sort()).toEqual([...made].sort())
  })

  it('says what the test wants, signed', async () => {
    await makeTransaction('T1', { ipn: false })
    const fields = { OrderID: 'ANOTHER', Amount: 7, ResponseCode: 1, Currency: null, Locale: true }
    const again = await control('POST', '/transactions/T1/ipn', { fields })
    expect(again.status).toBe(202)
    const [notice] = await receive(1)
    expect(notice).toMatchObject({
      svc_TransactionID: 'T1',
      svc_OrderID: 'ANOTHER',
      svc_Amount: '7',
      svc_ResponseCode: '1',
      svc_Locale: true,
    })
    expect(notice).not.toHaveProperty('svc_Currency')
  })
})

describe('a refund notification', () => {
  it('carries the documented fields; the request id is part of its hash', async () => {
    await makeTransaction('T1', { payments: [PAYMENT], ipn: false })
    const made = await control('POST', '/payments/P1/portal-refund', { amount: '40.50' })
    const { requestId } = z.object({ requestId: z.string() }).parse(await made.json())
    const [notice] = await receive(1)
    expect(notice).toMatchObject({
      svc_Command: 'REFUND',
      svc_MerchantCode: 'UFLIYL',
      svc_OrderID: 'DH1',
      svc_PaymentID: 'P1',
      svc_RequestID: requestId,
      svc_Version: '1',
      svc_ResponseMsg: 'Success',
    })
    expect(merchant.received[0]).toContain('"svc_Amount":40.50,"svc_Fee":0,')
    expect(notice?.svc_TransactionID).not.toBe('T1')
    expect(verify(notice ?? {}, { svc_RequestID: 'R2' })).toBe('wrong')
  })

  it('says what the test wants, however it ended', async () => {
    await makeTransaction('T1', { payments: [PAYMENT], ipn: false })
    await control('PUT', '/refund-mode', { fee: '12.5' })
    const made = await control('POST', '/payments/P1/portal-refund', { amount: '10' })
    const { requestId } = z.object({ requestId: z.string() }).parse(await made.json())
    const contradicting = { code: 33, message: 'no such account', fields: { Amount: 11 } }
    const sent = await control('POST', `/refunds/${requestId}/ipn`, contradicting)
    expect(sent.status).toBe(202)
    expect(await receive(2)).toMatchObject([
      { svc_ResponseCode: '0', svc_Fee: '12.5', svc_Amount: '10' },
      { svc_ResponseCode: '33', svc_ResponseMsg: 'no such account', svc_Amount: '11' },
    ])
  })

  it('of refunds made with the payment precedes that of the payment', async () => {
    const portalRefunds = [
      { amount: '30', fee: '3' },
      { amount: '20', ipn: false },
    ]
    const answer = await makeTransaction('T1', { payments: [{ ...PAYMENT, portalRefunds }] })
    expect(await answer.json()).toMatchObject({ payments: [{ refundedAmount: '50' }] })
    expect(await receive(2)).toMatchObject([
      { svc_Command: 'REFUND', svc_Amount: '30', svc_Fee: '3', svc_PaymentID: 'P1' },
      { svc_Command: 'PAY' },
    ])
    const excess = [{ ...PAYMENT, id: 'P2', portalRefunds: [{ amount: '60' }, { amount: '41' }] }]
    const refused = await makeTransaction('T2', { payments: excess })
    expect([refused.status, await refused.json()]).toEqual([
      409,
      { path: 'payments.0.portalRefunds', message: 'exceed the amount of the payment' },
    ])
    expect((await sandbox.control('GET', '/transactions/T2')).status).toBe(404)
  })
})

describe('delivery', () => {
  it('is repeated with the same bytes until it is acknowledged, and then ends', async () => {
    merchant.answers.push(
      { status: 200, body: '{"respcode":1,"respmsg":"not stored"}' },
      { status: 503, body: '{"respcode":0}' },
    )
    await makeTransaction('T1')
    await receive(3)
    expect(new Set(merchant.received).size).toBe(1)
    await expectDeliveries(
      { attempt: 1, outcome: 'refused', status: 200, respcode: 1 },
      { attempt: 2, outcome: 'refused', status: 503, respcode: 0 },
      { attempt: 3, outcome: 'acknowledged', status: 200, respcode: 0 },
    )
    await makeTransaction('NEXT')
    const arrived = (await receive(4)).map((notice) => notice.svc_TransactionID)
    expect(arrived).toEqual(['T1', 'T1', 'T1', 'NEXT'])
  })

  it('ends after the last attempt, and an unreachable address is no error', async () => {
    sandbox.setIpnUrl('http://127.0.0.1:9/ipn')
    await makeTransaction('T1')
    const entries = [1, 2, 3].map((attempt) => ({ attempt, outcome: 'unanswered', status: null }))
    await expectDeliveries(...entries)
  })

  it.each(['acceptThenReset', 'acceptThenHang', 'acceptThenCode'])(
    '%s delivers a notification, and once more, as if its acknowledgement were lost',
    async (kind) => {
      await control('POST', '/faults', { command: 'ipn', kind, times: 1 })
      await makeTransaction('T1')
      await receive(2)
      await expectDeliveries({ attempt: 1, outcome: kind }, { attempt: 2, outcome: 'acknowledged' })
    },
  )

  it('another fault drops a notification for good, a delay only postpones it', async () => {
    await control('POST', '/faults', { command: 'ipn', kind: 'reset', times: 1 })
    await control('POST', '/faults', { command: 'ipn', kind: 'delay', delayMs: 10, times: 1 })
    await makeTransaction('LOST')
    await expectDeliveries({ outcome: 'reset', status: null })
    await makeTransaction('HELD')
    expect(await receive(1)).toMatchObject([{ svc_TransactionID: 'HELD' }])
    await expectDeliveries({ transactionId: 'LOST' }, { transactionId: 'HELD' })
  })
})
