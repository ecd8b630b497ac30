import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { parse } from 'lossless-json'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { verifySecureHash } from '../src/gateway/signature.ts'
import { type Sandbox, startSandbox } from '../src/sandbox/server.ts'

const SECRET = '311235E7043244EC8306F96720748C56'
const RULE = { prefix: 'svc', exclude: ['TransAmount', 'ExtData'] }

let sandbox: Sandbox
let merchant: Server
let received: string[]
let answers: { status: number; body: string }[]

beforeEach(async () => {
  received = []
  answers = []
  merchant = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received.push(Buffer.concat(chunks).toString('utf8'))
    const { status, body } = answers.shift() ?? { status: 200, body: '{"respcode":0}' }
    response.writeHead(status).end(body)
  })
  merchant.listen(0, '127.0.0.1')
  await once(merchant, 'listening')
  const address = z.object({ port: z.number() }).parse(merchant.address())
  sandbox = await startSandbox({
    accounts: [{ merchantCode: 'UFLIYL', secret: SECRET }],
    ipnUrl: `http://127.0.0.1:${address.port}/ipn`,
    ipnRetryMs: [5, 10],
  })
})
afterEach(async () => {
  await sandbox.stop()
  merchant.closeAllConnections()
  merchant.close()
})

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })

const control = (method: string, path: string, body: unknown) =>
  fetch(`${sandbox.url}/sandbox${path}`, { method, body: JSON.stringify(body) })

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
    expect(verifySecureHash(notice, [SECRET], RULE)).toBe('verified')
    expect(verifySecureHash({ ...notice, svc_Amount: 1 }, [SECRET], RULE)).toBe('wrong')
  })

  it.each([
    ['SUCCESS', 0],
    ['FAILED', 1],
    ['PROCESSING', 99],
  ])('a payment that is %s is told with code %i', async (status, code) => {
    const payments = [{ amount: '1', paymentMethod: 'QR', status }]
    await makeTransaction('T1', { payments })
    await expectReceived(1)
    expect(String(readNotice(received[0]).svc_ResponseCode)).toBe(String(code))
  })

  it('is not sent when the transaction is made without one, but when a change asks for it', async () => {
    const payments = [{ id: '9', amount: '1', paymentMethod: 'QR', status: 'PROCESSING' }]
    await makeTransaction('QUIET', { payments, ipn: false })
    await control('PATCH', '/payments/9', { amount: '2' })
    await control('PATCH', '/payments/9?ipn=true', { status: 'SUCCESS' })
    await expectReceived(1)
    expect(received[0]).toContain('"svc_Amount":2,')
    expect(await readDeliveries()).toMatchObject({ data: [{ transactionId: 'QUIET' }] })
  })

  it('goes out in as many identical copies as asked, also a second time', async () => {
    await makeTransaction('T1', { ipn: { copies: 20 } })
    await expectReceived(20)
    await control('POST', '/transactions/T1/ipn', { copies: 5 })
    await expectReceived(25)
    expect(new Set(received).size).toBe(1)
  })

  it('shuffled notifications arrive in another order than they were made in', async () => {
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
    answers = [
      { status: 200, body: '{"respcode":1,"respmsg":"not stored"}' },
      { status: 503, body: '{"respcode":0}' },
    ]
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

  it('is over once it is acknowledged, whatever is tried again beside it', async () => {
    await makeTransaction('DONE')
    await expectReceived(1)
    answers = Array.from({ length: 3 }, () => ({ status: 200, body: '{"respcode":1}' }))
    await makeTransaction('REFUSED')
    await expectReceived(4)
    const told = received.map((body) => readNotice(body).svc_TransactionID)
    expect(told).toEqual(['DONE', 'REFUSED', 'REFUSED', 'REFUSED'])
  })

  it('is given up after the last attempt, and nobody listening is no failure', async () => {
    sandbox.setIpnUrl('http://127.0.0.1:9/ipn')
    await makeTransaction('T1')
    await eventually(async () =>
      expect(await readDeliveries()).toMatchObject({
        data: [1, 2, 3].map((attempt) => ({ attempt, outcome: 'unanswered', status: null })),
      }),
    )
  })

  it('a fault loses a notification for good, a delay only holds it', async () => {
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
