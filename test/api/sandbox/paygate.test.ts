import { describe, expect, it } from 'vitest'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { startSandbox } from '../../../src/sandbox/start.ts'
import { PUBLISHED_QUERY, PUBLISHED_QUERY_HASH } from '../../support/published.ts'
import { makeControl, SHOP } from '../../support/sandbox.ts'
import { useStarted } from '../../support/use-started.ts'

const OTHER = { merchantCode: 'SECOND', secret: 'A3EFDFABA8653DF2342E8DAC29B51AF0' }
const QUERY = { ...PUBLISHED_QUERY, svc_SecureHash: PUBLISHED_QUERY_HASH }

const sandbox = useStarted(
  async () => {
    const started = await startSandbox({ accounts: [SHOP, OTHER] })
    await makeControl(() => started)('POST', '/transactions', {
      transactionId: QUERY.svc_TransactionID,
      payments: [
        { id: '1439211', amount: '20000000', paymentMethod: 'QR', status: 'SUCCESS' },
        { id: '1439212', amount: '10000.50', paymentMethod: 'ATM', status: 'FAILED' },
        { id: '77', amount: '5', paymentMethod: 'CC', status: 'SUCCESS' },
      ],
      ipn: false,
    })
    return started
  },
  (started) => started.stop(),
)

const control = makeControl(() => sandbox)
const post = (body: string, { url } = sandbox) =>
  fetch(`${url}/api/v1/paygate/svcpay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
const ask = async (params: object) => (await post(JSON.stringify(params))).json()

const sign = (changes: Record<string, unknown>, secret = SHOP.secret) => {
  const params = { ...PUBLISHED_QUERY, ...changes }
  const rule = { prefix: 'svc', exclude: [] }
  return { ...params, svc_SecureHash: computeSecureHash(params, secret, rule) }
}

it('a query with the published hash is answered, with the digits of each amount', async () => {
  await control('PATCH', '/payments/77', { listed: false })
  const text = await (await post(JSON.stringify(QUERY))).text()
  expect(text).toContain('"amount":10000.50,')
  expect(JSON.parse(text)).toEqual({
    svc_ResponseCode: 0,
    svc_ResponseMsg: 'Success',
    svc_ResponseData: [
      { id: '1439211', status: 'SUCCESS', amount: 2e7, paymentMethod: 'QR', refundedAmount: 0 },
      { id: '1439212', status: 'FAILED', amount: 10000.5, paymentMethod: 'ATM', refundedAmount: 0 },
    ],
  })
})

describe('a request that breaks several rules is refused for the first of them', () => {
  const wrong = { svc_Version: '2', svc_MerchantCode: 'NOBODY', svc_SecureHash: '0'.repeat(64) }
  it.each([
    ['the command', { ...QUERY, ...wrong, svc_Command: 'PAY', svc_TransactionID: 1 }, 201],
    ['a parameter of the wrong type', { ...QUERY, ...wrong, svc_TransactionID: 1 }, 202],
    ['the version', { ...QUERY, ...wrong, svc_TransactionID: 'NONE' }, 203],
    ['the merchant', { ...QUERY, ...wrong, svc_Version: '1' }, 30],
    ['the signature', { ...QUERY, svc_TransactionID: 'NONE' }, 204],
    ['the transaction', sign({ svc_TransactionID: 'NONE' }), 32],
    ["another merchant's", sign({ svc_MerchantCode: 'SECOND' }, OTHER.secret), 32],
    ['a body that is neither JSON nor a form', [1], 200],
  ])('%s', async (_, params, code) => {
    expect(await ask(params)).toMatchObject({ svc_ResponseCode: code })
  })
})

it('two sandboxes share nothing, a prefix renames every parameter, and a stopped one is silent', async () => {
  const second = await startSandbox({ accounts: [SHOP], fieldPrefix: 'vnx' })
  const renamed = JSON.stringify(QUERY).replaceAll('svc_', 'vnx_')
  expect(await (await post(renamed, second)).json()).toMatchObject({ vnx_ResponseCode: 32 })
  expect((await fetch(`${second.url}/healthz`)).status).toBe(200)
  await second.stop()
  await expect(fetch(`${second.url}/healthz`)).rejects.toThrow()
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
    [422, 'POST', '/transactions', { payments: [{ amount: '1.23456' }] }, 'payments.0.amount'],
    [422, 'POST', '/transactions', { payments: [], merchantCode: 'NOBODY' }, 'merchantCode'],
    [422, 'PATCH', '/payments/1439211', { colour: 'red' }, 'colour'],
    [422, 'PUT', '/refund-mode', { settleMs: -1 }, 'settleMs'],
    [422, 'POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 0 }, 'delayMs'],
    [422, 'POST', '/payments/1439211/portal-refund', { amount: '0' }, 'amount'],
    [422, 'POST', '/seed', { seed: 1 }, 'transactions'],
    [422, 'POST', '/seed', { seed: 1, transactions: 10_001 }, 'transactions'],
    [422, 'POST', '/seed', { seed: 1.5, transactions: 1 }, 'seed'],
    [422, 'POST', '/seed', { seed: 1, transactions: 1, merchantCode: 'NOBODY' }, 'merchantCode'],
    [422, 'POST', '/transactions/GROWS/ipn', { fields: { ExtData: { a: 1 } } }, 'fields.ExtData'],
    [422, 'POST', '/transactions/GROWS/ipn', { fields: { 'a b': 1 } }, 'fields.a b'],
    [422, 'POST', '/transactions/GROWS/ipn', { copies: 0 }, 'copies'],
    [404, 'PATCH', '/payments/0', {}, 'paymentId'],
    [404, 'POST', '/refunds/nobody/ipn', {}, 'requestId'],
  ])('answers %i to %s %s %j', async (status, method, path, body, member) => {
    const answer = await control(method, path, body)
    expect([answer.status, await answer.json()]).toMatchObject([status, { path: member }])
  })
})
