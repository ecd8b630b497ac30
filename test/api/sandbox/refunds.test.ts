import { beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { PUBLISHED_REFUND, PUBLISHED_REFUND_HASH } from '../../support/published.ts'
import { type SandboxRig, useMerchant, useSandbox } from '../../support/sandbox.ts'
import { makeRefundCalls } from './sandbox-refunds.ts'

const KNOWN_REFUND = { ...PUBLISHED_REFUND, svc_SecureHash: PUBLISHED_REFUND_HASH }
const ACCEPTED = { svc_ResponseCode: 0 }

let sandbox: SandboxRig
let notices: () => Record<string, unknown>[]

beforeEach(async () => {
  const { ipnUrl, received } = await useMerchant()
  notices = () => received.map((body) => JSON.parse(body))
  sandbox = await useSandbox({ ipnUrl, refundMs: 5 })
  await control('POST', '/transactions', {
    transactionId: 'T1',
    payments: [
      { id: '1439211', amount: '20000', paymentMethod: 'QR', status: 'SUCCESS' },
      { id: '2', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' },
      { id: '3', amount: '100', paymentMethod: 'ATM', status: 'FAILED' },
    ],
    ipn: false,
  })
})

const { control, read, send, setMode, settle, refund, readRefunded, expectLedger } =
  makeRefundCalls(() => sandbox)
const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })
const expectNotices = (...ids: unknown[]) =>
  eventually(() => expect(notices().map((notice) => notice.svc_RequestID)).toEqual(ids))

describe('a refund', () => {
  it('with the published hash is accepted and moves its money when it settles', async () => {
    await setMode({ settleMs: null })
    expect(await send(KNOWN_REFUND)).toEqual({
      svc_ResponseCode: 0,
      svc_ResponseData: { transId: expect.stringMatching(/^[A-Z0-9]{12}$/) },
      svc_ResponseMsg: 'Success',
    })
    expect(await readRefunded('1439211')).toBe(0)
    await expectLedger()
    await settle(KNOWN_REFUND.svc_RequestID, { outcome: 'success' })
    expect(await readRefunded('1439211')).toBe(10000)
    const movement = { requestId: KNOWN_REFUND.svc_RequestID, paymentId: '1439211' }
    await expectLedger({ ...movement, amount: '10000', merchantCode: 'UFLIYL' })
  })

  it('is accepted as a form too, and keeps the account number out of the journal', async () => {
    const body = new URLSearchParams({ ...KNOWN_REFUND, svc_Amount: '10000' })
    const answer = await fetch(`${sandbox.url}/api/v1/paygate/svcpay`, { method: 'POST', body })
    expect(await answer.json()).toMatchObject(ACCEPTED)
    const text = await (await control('GET', '/calls')).text()
    expect(text).toContain('•••• 6789')
    expect(text).not.toContain(PUBLISHED_REFUND.svc_Receiver)
  })

  it('whose answer was lost has happened nevertheless', async () => {
    await control('POST', '/faults', { command: 'REFUND', kind: 'acceptThenReset', times: 1 })
    await expect(refund('R1', '10')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    await eventually(() => expectLedger({ requestId: 'R1' }))
  })

  it('that failed moves no money, and its amount is refundable again', async () => {
    await setMode({ settleMs: 500 })
    await refund('R1', '100')
    await settle('R1', { outcome: 'failure', code: 18 })
    expect(await refund('R2', '100')).toMatchObject(ACCEPTED)
    expect((await control('POST', '/refunds/R1/settle', { outcome: 'success' })).status).toBe(409)
    await expectNotices('R1', 'R2')
    expect(notices()).toMatchObject([{ svc_ResponseCode: 18 }, { svc_ResponseCode: 0 }])
    await expectLedger({ requestId: 'R2' })
  })

  it('made at the portal moves money immediately, within the remaining balance', async () => {
    const made = await control('POST', '/payments/2/portal-refund', { amount: '30' })
    expect(made.status).toBe(201)
    const { requestId } = z.object({ requestId: z.string() }).parse(await made.json())
    expect(await readRefunded()).toBe(30)
    await expectLedger({ requestId, amount: '30' })
    await expectNotices(requestId)
    const more = await control('POST', '/payments/2/portal-refund', { amount: '71' })
    expect(more.status).toBe(409)
  })

  it('shows late when the ledger lags', async () => {
    await control('PATCH', '/payments/2', { refundedAmountShown: '0' })
    await control('POST', '/payments/2/portal-refund', { amount: '30' })
    expect(await readRefunded()).toBe(0)
    await control('PATCH', '/payments/2', { refundedAmountShown: null })
    expect(await readRefunded()).toBe(30)
  })
})

describe('a refund is refused', () => {
  const qr = { svc_PaymentID: '1439211' }
  const broken = Buffer.from('{"accountName":"A"}').toString('base64')
  it.each([
    ['of nothing', '0', {}, 33],
    ['of less than nothing', '-1', {}, 33],
    ['of too many decimals', '1.00001', {}, 37],
    ['of an unknown payment', '1', { svc_PaymentID: '0' }, 211],
    ['of a failed payment', '1', { svc_PaymentID: '3' }, 212],
    ['of more than was paid', '100.0001', {}, 213],
    ['of a QR payment without receiver', '1', qr, 214],
    ['with a receiver that lacks members', '1', { ...qr, svc_Receiver: broken }, 214],
    ['in loose Base64', '1', { svc_Receiver: `${PUBLISHED_REFUND.svc_Receiver}\n` }, 214],
    ['with an amount in quotes', '1', { svc_Amount: '1' }, 202],
  ])('%s', async (_, amount, more, code) => {
    expect(await refund('R1', amount, more)).toMatchObject({
      svc_ResponseCode: code,
      svc_ResponseData: {},
    })
    expect(await refund('R1', '1')).toMatchObject(ACCEPTED)
  })

  it('when the remaining balance is reserved by one that has not settled', async () => {
    await setMode({ settleMs: null })
    await refund('R1', '60')
    expect(await refund('R2', '60')).toMatchObject({ svc_ResponseCode: 213 })
  })
})

describe('the mode of refunds', () => {
  it('is replaced as a whole: omitted members take their default', async () => {
    await setMode({ ipn: 'never', dedupes: false, settleMs: null })
    expect(await (await control('PUT', '/refund-mode', {})).json()).toMatchObject({
      ipn: 'normal',
      dedupes: true,
      guardsBalance: true,
      countsUnsettled: false,
      settleMs: 5,
    })
  })

  it('guards the balance, or accepts any amount', async () => {
    await setMode({ guardsBalance: false, settleMs: 0 })
    expect(await refund('R1', '500')).toMatchObject(ACCEPTED)
    await eventually(async () => expect(await readRefunded()).toBe(500))
  })

  it('early notifies before the REFUND is answered and before money moves', async () => {
    await setMode({ ipn: 'early', settleMs: null })
    await control('POST', '/faults', { command: 'ipn', kind: 'delay', delayMs: 200, times: 1 })
    const accepted = refund('R1', '10')
    await eventually(async () => {
      const delayed = {
        data: [{ command: 'REFUND', outcome: 'received', code: null }, { command: 'ipn' }],
      }
      expect(await read('/calls')).toMatchObject(delayed)
    })
    expect(await accepted).toMatchObject(ACCEPTED)
    await expectNotices('R1')
    await expectLedger()
    await settle('R1', { outcome: 'success' })
    await refund('R2', '10')
    await expectNotices('R1', 'R2')
  })

  it('late notifies ten settling times after the money moved', async () => {
    await setMode({ ipn: 'late', settleMs: 600_000 })
    await refund('SLOW', '10')
    await settle('SLOW', { outcome: 'success' })
    await setMode({ ipn: 'late', settleMs: 1 })
    await refund('FAST', '10')
    await expectNotices('FAST')
    await expectLedger({ requestId: 'SLOW' }, { requestId: 'FAST' })
  })

  it('twice sends the same notification twice, never sends none', async () => {
    await setMode({ ipn: 'never' })
    await refund('SILENT', '10')
    await eventually(() => expectLedger({ requestId: 'SILENT' }))
    await setMode({ ipn: 'twice' })
    await refund('TWICE', '10')
    await expectNotices('TWICE', 'TWICE')
    expect(notices()[0]).toEqual(notices()[1])
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
