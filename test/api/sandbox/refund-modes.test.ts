import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { parse, stringify } from 'lossless-json'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { verifySecureHash } from '../../../src/gateway/signature.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { SHOP } from '../../support/sandbox.ts'
import { makeRefundCalls } from '../../support/sandbox-refunds.ts'

let sandbox: Sandbox
let merchant: Server
let notices: Record<string, unknown>[]
let beforeNotice: () => Promise<void>

beforeEach(async () => {
  notices = []
  beforeNotice = () => Promise.resolve()
  merchant = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    await beforeNotice()
    const text = Buffer.concat(chunks).toString('utf8')
    notices.push(z.record(z.string(), z.unknown()).parse(parse(text)))
    response.end('{"respcode":0}')
  })
  merchant.listen(0, '127.0.0.1')
  await once(merchant, 'listening')
  const address = z.object({ port: z.number() }).parse(merchant.address())
  sandbox = await startSandbox({
    accounts: [SHOP],
    ipnUrl: `http://127.0.0.1:${address.port}/ipn`,
    refundMs: 5,
  })
  await control('POST', '/transactions', {
    transactionId: 'T1',
    orderId: 'DH1',
    payments: [{ id: '2', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' }],
    ipn: false,
  })
})
afterEach(async () => {
  await sandbox.stop()
  merchant.closeAllConnections()
  merchant.close()
})

const { control, read, setMode, settle, refund, readRefunded, expectLedger } = makeRefundCalls(
  () => sandbox,
)
const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })

const ACCEPTED = { svc_ResponseCode: 0 }
const Portal = z.object({ requestId: z.string() })
const expectNotices = (count: number) => eventually(() => expect(notices).toHaveLength(count))
describe('a refund notification', () => {
  it('follows a refund that settled by itself; the request id is part of its hash', async () => {
    expect(await refund('R1', '40.50')).toMatchObject(ACCEPTED)
    await expectNotices(1)
    expect(await readRefunded()).toBe(40.5)
    const notice = notices[0] ?? {}
    expect(notice).toMatchObject({
      svc_Command: 'REFUND',
      svc_MerchantCode: 'UFLIYL',
      svc_OrderID: 'DH1',
      svc_PaymentID: '2',
      svc_RequestID: 'R1',
      svc_Version: '1',
      svc_ResponseMsg: 'Success',
    })
    expect(stringify(notice)).toContain('"svc_Amount":40.50,"svc_Fee":0,')
    expect(notice.svc_TransactionID).not.toBe('T1')
    const rule = { prefix: 'svc', exclude: [] }
    expect(verifySecureHash(notice, [SHOP.secret], rule)).toBe('verified')
    expect(verifySecureHash({ ...notice, svc_RequestID: 'R2' }, [SHOP.secret], rule)).toBe('wrong')
  })

  it('of a failure carries its code; no money moves, and the amount is refundable again', async () => {
    await setMode({ settleMs: 500 })
    await refund('R1', '100')
    await settle('R1', { outcome: 'failure', code: 18 })
    await expectNotices(1)
    expect(String(notices[0]?.svc_ResponseCode)).toBe('18')
    expect(await refund('R2', '100')).toMatchObject(ACCEPTED)
    expect((await control('POST', '/refunds/R1/settle', { outcome: 'success' })).status).toBe(409)
    await expectNotices(2)
    await expectLedger({ requestId: 'R2' })
  })

  it('of a portal refund carries a request id that is not ours', async () => {
    const made = await control('POST', '/payments/2/portal-refund', { amount: '30' })
    await expectNotices(1)
    expect(await made.json()).toMatchObject({ requestId: notices[0]?.svc_RequestID })
    await expectLedger({ requestId: notices[0]?.svc_RequestID, amount: '30' })
  })

  it('of a portal refund is sent as planned, whatever the mode', async () => {
    await setMode({ ipn: 'never' })
    const plan = { copies: 2, delayMs: 5, shuffle: true }
    await control('POST', '/payments/2/portal-refund', { amount: '30', ipn: plan })
    await expectNotices(2)
    await setMode({ ipn: 'normal' })
    const silent = { amount: '1', ipn: false }
    expect((await control('POST', '/payments/2/portal-refund', silent)).status).toBe(201)
    const next = await control('POST', '/payments/2/portal-refund', { amount: '2' })
    const { requestId } = Portal.parse(await next.json())
    await expectNotices(3)
    expect(notices[2]?.svc_RequestID).toBe(requestId)
  })
})

describe('the refund mode', () => {
  it('early notifies before the REFUND is answered and before money moves', async () => {
    await setMode({ ipn: 'early', settleMs: null })
    let callThen: unknown
    beforeNotice = async () => {
      callThen = await read('/calls?command=REFUND')
    }
    await refund('R1', '10')
    expect(notices).toHaveLength(1)
    expect(callThen).toMatchObject({ data: [{ outcome: 'received', code: null }] })
    await expectLedger()
    await settle('R1', { outcome: 'success' })
    beforeNotice = () => Promise.resolve()
    await refund('R2', '10')
    expect(notices.map((notice) => notice.svc_RequestID)).toEqual(['R1', 'R2'])
  })

  it('late notifies ten settling times after the money moved', async () => {
    await setMode({ ipn: 'late', settleMs: 600_000 })
    await refund('SLOW', '10')
    await settle('SLOW', { outcome: 'success' })
    await setMode({ ipn: 'late', settleMs: 1 })
    await refund('FAST', '10')
    await expectNotices(1)
    expect(notices[0]?.svc_RequestID).toBe('FAST')
    await expectLedger({ requestId: 'SLOW' }, { requestId: 'FAST' })
  })

  it('twice sends the same notification twice, never sends none', async () => {
    await setMode({ ipn: 'never' })
    await refund('SILENT', '10')
    await eventually(() => expectLedger({ requestId: 'SILENT' }))
    await setMode({ ipn: 'twice' })
    await refund('TWICE', '10')
    await expectNotices(2)
    expect(notices[0]).toEqual(notices[1])
    expect(notices[0]?.svc_RequestID).toBe('TWICE')
  })

  it('deduplicates request ids, or moves the money again', async () => {
    await refund('R1', '10')
    expect(await refund('R1', '10')).toMatchObject({ svc_ResponseCode: 215 })
    await setMode({ dedupes: false })
    expect(await refund('R1', '10')).toMatchObject(ACCEPTED)
    await eventually(() => expectLedger({ requestId: 'R1' }, { requestId: 'R1' }))
    expect(await readRefunded()).toBe(20)
  })

  it('counts unsettled refunds until they fail', async () => {
    await setMode({ countsUnsettled: true, settleMs: null })
    await refund('R1', '10')
    expect(await readRefunded()).toBe(10)
    await settle('R1', { outcome: 'failure' })
    expect(await readRefunded()).toBe(0)
  })
})
