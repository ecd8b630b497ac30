import { LosslessNumber, stringify } from 'lossless-json'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { computeSecureHash } from '../src/gateway/signature.ts'
import { type Sandbox, startSandbox } from '../src/sandbox/server.ts'

const SECRET = '311235E7043244EC8306F96720748C56'
const RECEIVER = Buffer.from(
  '{"accountName":"NGUYEN VAN A","accountNumber":"123456789","swiftCode":"ASCBVNVX"}',
).toString('base64')
const KNOWN_REFUND = {
  svc_MerchantCode: 'UFLIYL',
  svc_Command: 'REFUND',
  svc_RequestID: 'a68de39f-ea76-43fb-848f-b605b4aaf44e',
  svc_PaymentID: '1439211',
  svc_Amount: 10000,
  svc_Version: '1',
  svc_Receiver: RECEIVER,
  svc_SecureHash: '88cafbc3bc1312a4dbae11dedf17819ea6462b85a218298417a917f1797597fa',
}

let sandbox: Sandbox
beforeEach(async () => {
  const accounts = [{ merchantCode: 'UFLIYL', secret: SECRET }]
  sandbox = await startSandbox({ accounts, refundMs: 5 })
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

const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 5000, interval: 5 })

const control = (method: string, path: string, body?: unknown) =>
  fetch(`${sandbox.url}/sandbox${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

const read = async (path: string) => (await control('GET', path)).json()
const setMode = async (mode: object) =>
  expect((await control('PUT', '/refund-mode', mode)).status).toBe(200)
const settle = async (requestId: string, body: object) =>
  expect((await control('POST', `/refunds/${requestId}/settle`, body)).status).toBe(200)

const send = async (params: object) => {
  const answer = await fetch(`${sandbox.url}/api/v1/paygate/svcpay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: stringify(params) ?? '',
  })
  return answer.json()
}

const sign = (params: Record<string, unknown>, exclude: string[] = []) => ({
  ...params,
  svc_SecureHash: computeSecureHash(params, SECRET, { prefix: 'svc', exclude }),
})

const common = { svc_MerchantCode: 'UFLIYL', svc_Version: '1' }
const refund = (requestId: string, amount: string, more: object = {}) =>
  send(
    sign(
      {
        ...common,
        svc_Command: 'REFUND',
        svc_RequestID: requestId,
        svc_PaymentID: '2',
        svc_Amount: new LosslessNumber(amount),
        ...more,
      },
      ['RequestID'],
    ),
  )

const readRefunded = async (id = '2') => {
  const answer = z
    .object({ svc_ResponseData: z.array(z.object({ id: z.string(), refundedAmount: z.number() })) })
    .parse(await send(sign({ ...common, svc_Command: 'QUERY_PT', svc_TransactionID: 'T1' })))
  return answer.svc_ResponseData.find((payment) => payment.id === id)?.refundedAmount
}

const ACCEPTED = { svc_ResponseCode: 0 }
const expectLedger = async (...movements: object[]) =>
  expect(await read('/ledger')).toMatchObject({ data: movements })

describe('a refund', () => {
  it('with the published hash is accepted, moves its money later and is told', async () => {
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
    expect(text).not.toContain(RECEIVER)
  })

  it('a refund whose answer was lost has happened all the same', async () => {
    await control('POST', '/faults', { command: 'REFUND', kind: 'acceptThenReset', times: 1 })
    await expect(refund('R1', '10')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    await eventually(() => expectLedger({ requestId: 'R1' }))
  })

  it('that was portal-made moves money at once, within what is left', async () => {
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
    ['with a receiver in loose Base64', '1', { svc_Receiver: `${RECEIVER}\n` }, 214],
    ['with an amount in quotes', '1', { svc_Amount: '1' }, 202],
  ])('%s', async (_, amount, more, code) => {
    expect(await refund('R1', amount, more)).toMatchObject({
      svc_ResponseCode: code,
      svc_ResponseData: {},
    })
    expect(await refund('R1', '1')).toMatchObject(ACCEPTED)
  })

  it('when its request id was hashed although the rule leaves it out', async () => {
    const { svc_SecureHash: _, ...params } = KNOWN_REFUND
    expect(await send(sign(params))).toMatchObject({ svc_ResponseCode: 204 })
  })

  it('when what is left is reserved by one that has not ended', async () => {
    await setMode({ settleMs: null })
    await refund('R1', '60')
    expect(await refund('R2', '60')).toMatchObject({ svc_ResponseCode: 213 })
  })
})

describe('the mode of refunds', () => {
  it('guards the balance, or lets anything through', async () => {
    await setMode({ guardsBalance: false, settleMs: 0 })
    expect(await refund('R1', '500')).toMatchObject(ACCEPTED)
    await eventually(async () => expect(await readRefunded()).toBe(500))
  })

  it('is replaced as a whole: what is left out is default again', async () => {
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
