import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'
import { PUBLISHED_REFUND, PUBLISHED_REFUND_HASH } from '../../support/published.ts'
import { SHOP } from '../../support/sandbox.ts'
import { makeRefundCalls } from '../../support/sandbox-refunds.ts'

const KNOWN_REFUND = { ...PUBLISHED_REFUND, svc_SecureHash: PUBLISHED_REFUND_HASH }

let sandbox: Sandbox
beforeEach(async () => {
  sandbox = await startSandbox({ accounts: [SHOP], refundMs: 5 })
  await control('POST', '/transactions', {
    transactionId: 'T1',
    orderId: 'DH1',
    payments: [
      { id: '1439211', amount: '20000', paymentMethod: 'QR', status: 'SUCCESS' },
      { id: '2', amount: '100', paymentMethod: 'CC', status: 'SUCCESS' },
      { id: '3', amount: '100', paymentMethod: 'ATM', status: 'FAILED' },
    ],
    ipn: false,
  })
})
afterEach(() => sandbox.stop())

const { control, sign, send, setMode, settle, refund, readRefunded, expectLedger } =
  makeRefundCalls(() => sandbox)
const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })

const ACCEPTED = { svc_ResponseCode: 0 }
describe('a refund', () => {
  it('with the published hash is accepted and moves its money when it settles', async () => {
    await setMode({ settleMs: null })
    const answer = await send(KNOWN_REFUND)
    expect(answer).toEqual({
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

  it('made at the portal moves money immediately, within the remaining balance', async () => {
    const made = await control('POST', '/payments/2/portal-refund', { amount: '30' })
    expect(made.status).toBe(201)
    expect(await readRefunded()).toBe(30)
    await expectLedger({ amount: '30' })
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
    [
      'with a receiver in loose Base64',
      '1',
      { svc_Receiver: `${PUBLISHED_REFUND.svc_Receiver}\n` },
      214,
    ],
    ['with an amount in quotes', '1', { svc_Amount: '1' }, 202],
  ])('%s', async (_, amount, more, code) => {
    expect(await refund('R1', amount, more)).toMatchObject({
      svc_ResponseCode: code,
      svc_ResponseData: {},
    })
    expect(await refund('R1', '1')).toMatchObject(ACCEPTED)
  })

  it('when its request id was hashed although the rule excludes it', async () => {
    const { svc_SecureHash: _, ...params } = KNOWN_REFUND
    expect(await send(sign(params))).toMatchObject({ svc_ResponseCode: 204 })
  })

  it('when the remaining balance is reserved by one that has not settled', async () => {
    await setMode({ settleMs: null })
    await refund('R1', '60')
    expect(await refund('R2', '60')).toMatchObject({ svc_ResponseCode: 213 })
  })
})

describe('the mode of refunds', () => {
  it('guards the balance, or accepts any amount', async () => {
    await setMode({ guardsBalance: false, settleMs: 0 })
    expect(await refund('R1', '500')).toMatchObject(ACCEPTED)
    await eventually(async () => expect(await readRefunded()).toBe(500))
  })

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
})
