import { parse } from 'lossless-json'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { verifySecureHash } from '../../../src/gateway/signature.ts'
import {
  type MerchantAnswer,
  type SandboxRig,
  SHOP,
  useMerchant,
  useSandbox,
} from '../../support/sandbox.ts'

const RULE = { prefix: 'svc', exclude: ['TransAmount', 'ExtData'] }

let sandbox: SandboxRig
let received: string[]
let answers: MerchantAnswer[]

beforeEach(async () => {
  const merchant = await useMerchant()
  received = merchant.received
  answers = merchant.answers
  sandbox = await useSandbox({ ipnUrl: merchant.ipnUrl, ipnRetryMs: [5, 10] })
})

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })

const control = (method: string, path: string, body: unknown) => sandbox.control(method, path, body)

const makeTransaction = (transactionId: string, more: object = {}) =>
  control('POST', '/transactions', {
    transactionId,
    orderId: 'DH1',
    payments: [{ amount: '10000.50', paymentMethod: 'ATM', status: 'SUCCESS' }],
    ...more,
  })

const readDeliveries = async () => (await fetch(`${sandbox.url}/sandbox/calls?command=ipn`)).json()

const expectReceived = (count: number) => eventually(() => expect(received).toHaveLength(count))

const readNotice = (body: string | undefined) =>
  z.record(z.string(), z.unknown()).parse(parse(body ?? ''))

describe('a payment notification', () => {
  it('carries the documented fields, the digits of the amount and a hash that verifies', async () => {
    await makeTransaction('T1', { extData: { shop: 'H1' } })
    await expectReceived(1)
    const notice = readNotice(received[0])
    expect(notice).toMatchObject({
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
    })
    expect(received[0]).toContain('"svc_Amount":10000.50,')
    expect(verifySecureHash(notice, [SHOP.secret], RULE)).toBe('verified')
    expect(verifySecureHash({ ...notice, svc_Amount: 1 }, [SHOP.secret], RULE)).toBe('wrong')
  })

  it('carries the amount of the order, and what was paid of it without signing it', async () => {
    await makeTransaction('T1', { amount: '250000', transAmount: '1000.50' })
    await expectReceived(1)
    expect(received[0]).toContain('"svc_Amount":250000,')
    expect(received[0]).toContain('"svc_TransAmount":1000.50,')
    const notice = readNotice(received[0])
    expect(verifySecureHash(notice, [SHOP.secret], RULE)).toBe('verified')
    expect(verifySecureHash({ ...notice, svc_TransAmount: 1 }, [SHOP.secret], RULE)).toBe(
      'verified',
    )
  })

  it.each([
    ['SUCCESS', 0],
    ['FAILED', 1],
    ['PROCESSING', 99],
  ])('of a payment that is %s carries code %i', async (status, code) => {
    const payments = [{ amount: '1', paymentMethod: 'QR', status }]
    await makeTransaction('T1', { payments })
    await expectReceived(1)
    expect(String(readNotice(received[0]).svc_ResponseCode)).toBe(String(code))
  })

  it('can be omitted when a transaction is made, and requested with a change', async () => {
    const payments = [{ id: '9', amount: '1', paymentMethod: 'QR', status: 'PROCESSING' }]
    await makeTransaction('QUIET', { payments, ipn: false })
    await control('PATCH', '/payments/9', { amount: '2' })
    await control('PATCH', '/payments/9?ipn=true', { status: 'SUCCESS' })
    await expectReceived(1)
    expect(received[0]).toContain('"svc_Amount":2,')
    expect(await readDeliveries()).toMatchObject({ data: [{ transactionId: 'QUIET' }] })
  })

  it('is sent in the requested number of identical copies, also when sent again', async () => {
    await makeTransaction('T1', { ipn: { copies: 20 } })
    await expectReceived(20)
    await control('POST', '/transactions/T1/ipn', { copies: 5 })
    await expectReceived(25)
    expect(new Set(received).size).toBe(1)
  })

  it('arrives out of order when shuffled', async () => {
    const made = Array.from({ length: 12 }, (_, index) => `T${index}`)
    for (const id of made) await makeTransaction(id, { ipn: false })
    await Promise.all(
      made.map((id) => control('POST', `/transactions/${id}/ipn`, { delayMs: 200, shuffle: true })),
    )
    await expectReceived(12)
    const arrived = received.map((body) => readNotice(body).svc_TransactionID)
    expect(arrived).not.toEqual(made)
    expect([...arrived].sort()).toEqual([...made].sort())
  })
})

describe('delivery', () => {
  it('is repeated with the same bytes until it is acknowledged', async () => {
    answers.push(
      { status: 200, body: '{"respcode":1,"respmsg":"not stored"}' },
      { status: 503, body: '{"respcode":0}' },
    )
    await makeTransaction('T1')
    await expectReceived(3)
    expect(new Set(received).size).toBe(1)
    await eventually(async () =>
      expect(await readDeliveries()).toMatchObject({
        data: [
          { attempt: 1, outcome: 'refused', status: 200, respcode: 1 },
          { attempt: 2, outcome: 'refused', status: 503, respcode: 0 },
          { attempt: 3, outcome: 'acknowledged', status: 200, respcode: 0 },
        ],
      }),
    )
  })

  it('ends once acknowledged, independent of other deliveries', async () => {
    await makeTransaction('DONE')
    await expectReceived(1)
    answers.push(...Array.from({ length: 3 }, () => ({ status: 200, body: '{"respcode":1}' })))
    await makeTransaction('REFUSED')
    await expectReceived(4)
    const delivered = received.map((body) => readNotice(body).svc_TransactionID)
    expect(delivered).toEqual(['DONE', 'REFUSED', 'REFUSED', 'REFUSED'])
  })

  it('ends after the last attempt, and an unreachable address is no error', async () => {
    sandbox.setIpnUrl('http://127.0.0.1:9/ipn')
    await makeTransaction('T1')
    await eventually(async () =>
      expect(await readDeliveries()).toMatchObject({
        data: [1, 2, 3].map((attempt) => ({ attempt, outcome: 'unanswered', status: null })),
      }),
    )
  })

  it('a fault drops a notification for good, a delay only postpones it', async () => {
    await control('POST', '/faults', { command: 'ipn', kind: 'reset', times: 1 })
    await control('POST', '/faults', { command: 'ipn', kind: 'delay', delayMs: 10, times: 1 })
    await makeTransaction('LOST')
    await eventually(async () =>
      expect(await readDeliveries()).toMatchObject({ data: [{ outcome: 'reset', status: null }] }),
    )
    await makeTransaction('HELD')
    await expectReceived(1)
    expect(readNotice(received[0])).toMatchObject({ svc_TransactionID: 'HELD' })
    expect(await readDeliveries()).toMatchObject({
      data: [{ transactionId: 'LOST' }, { transactionId: 'HELD' }],
    })
  })
})
