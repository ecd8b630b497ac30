import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/start.ts'

const SECRET = '311235E7043244EC8306F96720748C56'
const OTHER_SECRET = 'A3EFDFABA8653DF2342E8DAC29B51AF0'
const ACCOUNT = { merchantCode: 'UFLIYL', secret: SECRET }
const TRANSACTION = '240830080146NDTISR'
const KNOWN_QUERY = {
  svc_Command: 'QUERY_PT',
  svc_MerchantCode: 'UFLIYL',
  svc_TransactionID: TRANSACTION,
  svc_Version: '1',
  svc_SecureHash: 'df594d1e467bd327a30fa45ce259987718a68bd54cc67afe74d1e15e255182a4',
}

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox({
    accounts: [ACCOUNT, { merchantCode: 'SECOND', secret: OTHER_SECRET }],
  })
  await control('POST', '/transactions', {
    transactionId: TRANSACTION,
    payments: [
      { id: '1439211', amount: '20000000', paymentMethod: 'QR', status: 'SUCCESS' },
      { id: '1439212', amount: '10000.50', paymentMethod: 'ATM', status: 'FAILED' },
    ],
    ipn: false,
  })
})
afterAll(() => sandbox.stop())

const control = (method: string, path: string, body?: unknown, at = sandbox) =>
  fetch(`${at.url}/sandbox${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

const post = (body: string, type = 'application/json', at = sandbox) =>
  fetch(`${at.url}/api/v1/paygate/svcpay`, {
    method: 'POST',
    headers: { 'content-type': type },
    body,
  })

const signQuery = (changes: Record<string, unknown>, secret = SECRET) => {
  const { svc_SecureHash: _, ...known } = KNOWN_QUERY
  const params = { ...known, ...changes }
  return {
    ...params,
    svc_SecureHash: computeSecureHash(params, secret, { prefix: 'svc', exclude: [] }),
  }
}

const ask = async (params: object) => (await post(JSON.stringify(params))).json()

describe('a query of payments', () => {
  it('is answered when it carries the published hash', async () => {
    expect(await ask(KNOWN_QUERY)).toEqual({
      svc_ResponseCode: 0,
      svc_ResponseMsg: 'Success',
      svc_ResponseData: [
        { id: '1439211', status: 'SUCCESS', amount: 2e7, paymentMethod: 'QR', refundedAmount: 0 },
        {
          id: '1439212',
          status: 'FAILED',
          amount: 10000.5,
          paymentMethod: 'ATM',
          refundedAmount: 0,
        },
      ],
    })
  })

  it('keeps the digits of an amount on the wire', async () => {
    const text = await (await post(JSON.stringify(KNOWN_QUERY))).text()
    expect(text).toContain('"amount":10000.50,')
  })

  it('leaves out a payment that is no longer listed', async () => {
    await control('POST', '/transactions', {
      transactionId: 'GONE',
      payments: [{ id: '77', amount: 5, paymentMethod: 'CC', status: 'SUCCESS' }],
      ipn: false,
    })
    await control('PATCH', '/payments/77', { listed: false })
    expect(await ask(signQuery({ svc_TransactionID: 'GONE' }))).toMatchObject({
      svc_ResponseCode: 0,
      svc_ResponseData: [],
    })
  })
})

describe('a request that breaks several rules is refused for the first of them', () => {
  const wrong = { svc_Version: '2', svc_MerchantCode: 'NOBODY', svc_SecureHash: '0'.repeat(64) }
  it.each([
    ['the command', { ...KNOWN_QUERY, ...wrong, svc_Command: 'PAY', svc_TransactionID: 1 }, 201],
    ['a parameter of the wrong type', { ...KNOWN_QUERY, ...wrong, svc_TransactionID: 1 }, 202],
    ['the version', { ...KNOWN_QUERY, ...wrong, svc_TransactionID: 'NONE' }, 203],
    ['the merchant', { ...KNOWN_QUERY, ...wrong, svc_Version: '1' }, 30],
    ['the signature', { ...KNOWN_QUERY, svc_TransactionID: 'NONE' }, 204],
    ['the transaction', signQuery({ svc_TransactionID: 'NONE' }), 32],
  ])('%s', async (_, params, code) => {
    const answer = await post(JSON.stringify(params))
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ svc_ResponseCode: code })
  })

  it('a body that is neither JSON nor a form', async () => {
    expect(await (await post('[1]')).json()).toMatchObject({ svc_ResponseCode: 200 })
  })
})

describe('accounts and sandboxes', () => {
  it('a transaction is visible to its merchant only', async () => {
    const foreign = signQuery({ svc_MerchantCode: 'SECOND' }, OTHER_SECRET)
    expect(await ask(foreign)).toMatchObject({ svc_ResponseCode: 32 })
  })

  it('two sandboxes share nothing, and a prefix renames every parameter', async () => {
    const second = await startSandbox({ accounts: [ACCOUNT], fieldPrefix: 'vnx' })
    const params = Object.entries(KNOWN_QUERY).map(([name, value]) => [
      name.replace('svc_', 'vnx_'),
      value,
    ])
    const answer = await post(JSON.stringify(Object.fromEntries(params)), undefined, second)
    expect(await answer.json()).toMatchObject({ vnx_ResponseCode: 32 })
    await second.stop()
  })

  it('a stopped sandbox does not answer', async () => {
    const { url, stop } = await startSandbox({ accounts: [ACCOUNT] })
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    await stop()
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
  })
})

describe('control', () => {
  it('makes identifiers of the shapes the gateway uses', async () => {
    const payments = [{ amount: '1', paymentMethod: 'QR', status: 'PROCESSING' }]
    const made = await control('POST', '/transactions', { payments, ipn: false })
    expect(made.status).toBe(201)
    expect(await made.json()).toMatchObject({
      transactionId: expect.stringMatching(/^\d{12}[A-Z]{6}$/),
      currency: 'VND',
      payments: [{ id: expect.stringMatching(/^\d+$/), amount: '1', refundedAmount: '0' }],
    })
  })

  it('adds payments to an existing transaction and refuses a taken id', async () => {
    const add = (id: string) =>
      control('POST', '/transactions', {
        transactionId: 'GROWS',
        payments: [{ id, amount: '1', paymentMethod: 'QR', status: 'FAILED' }],
        ipn: false,
      })
    await add('501')
    expect(await (await add('502')).json()).toMatchObject({
      payments: [{ id: '501' }, { id: '502' }],
    })
    expect((await add('501')).status).toBe(409)
  })

  it.each([
    ['POST', '/transactions', { payments: [{ amount: '1.23456' }] }, 'payments.0.amount'],
    ['POST', '/transactions', { payments: [], merchantCode: 'NOBODY' }, 'merchantCode'],
    ['PATCH', '/payments/1439211', { colour: 'red' }, 'colour'],
    ['PUT', '/refund-mode', { settleMs: -1 }, 'settleMs'],
    ['POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 0 }, 'delayMs'],
    ['POST', '/payments/1439211/portal-refund', { amount: '0' }, 'amount'],
  ])('%s %s names the invalid member', async (method, path, body, field) => {
    const answer = await control(method, path, body)
    expect(answer.status).toBe(422)
    expect(await answer.json()).toMatchObject({ path: field })
  })

  it('delays for a second by default', async () => {
    const add = async (fault: object) => (await control('POST', '/faults', fault)).json()
    expect(await add({ command: 'ipn', kind: 'delay' })).toMatchObject({ delayMs: 1_000 })
    expect(await add({ command: 'ipn', kind: 'delay', delayMs: 7 })).toMatchObject({ delayMs: 7 })
    expect((await control('DELETE', '/faults')).status).toBe(204)
  })

  it('answers 404 for an unknown payment', async () => {
    expect((await control('PATCH', '/payments/0', {})).status).toBe(404)
  })
})
