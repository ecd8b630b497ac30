import { randomUUID } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { Refund } from '../../src/refunds/view.ts'
import { Transaction } from '../../src/transactions/view.ts'
import { withKey, writeMerchantsFile } from '../support/api.ts'
import { pickPort } from '../support/ports.ts'
import { settingsFor, startSandboxProcess, startServiceProcess } from '../support/process.ts'
import { KEY, MERCHANT } from '../support/service.ts'
import { useTestDatabase } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const database = useTestDatabase()

const file = writeMerchantsFile([{ ...MERCHANT, accessToken: 'token-for-cards-as-issued' }])
afterAll(() => file.remove())

const Made = z.object({
  transactionId: z.string(),
  payments: z.array(z.object({ id: z.string() })),
})
const Calls = z.object({
  data: z.array(
    z.object({ command: z.string(), code: z.number().nullish(), signature: z.string().optional() }),
  ),
})
const RECEIVER = { accountName: 'NGUYỄN VĂN A', accountNumber: '123456789', swiftCode: 'ASCBVNVX' }

const ACCOUNT = {
  GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode,
  GATEWAY_SECRET: MERCHANT.secret,
  GATEWAY_CLIENT_ID: 'shop',
  GATEWAY_CLIENT_SECRET: 'client-secret-hunter2',
}

it.each([
  ['as they come', ACCOUNT],
  [
    'of another brand, in forms, with other rules of signing and a file of accounts',
    {
      MERCHANTS_FILE: file.path,
      GATEWAY_FIELD_PREFIX: 'vnx',
      GATEWAY_PAYGATE_PATH: '/other/gate',
      GATEWAY_ENCODING: 'form',
      GATEWAY_REFUND_HASH_EXCLUDE: 'none',
      IPN_HASH_EXCLUDE: 'OrderInfo',
    },
  ],
])(
  'sandbox and service, two processes %s: notified, asked, stored, read, refunded; cards read',
  async (_, shared) => {
    const port = await pickPort()
    const sandbox = await startSandboxProcess({
      ...shared,
      SANDBOX_PORT: '0',
      SANDBOX_IPN_URL: `http://127.0.0.1:${port}/ipn`,
      SANDBOX_REFUND_MS: '20',
    })
    const {
      GATEWAY_MERCHANT_CODE: _code,
      GATEWAY_SECRET: _secret,
      ...settings
    } = settingsFor(database.url, sandbox.url)
    const service = await startServiceProcess({ ...settings, ...shared, PORT: port })
    const get = async (path: string) => (await fetch(service.url + path, withKey())).json()

    const made = await fetch(`${sandbox.url}/sandbox/transactions`, {
      method: 'POST',
      body: JSON.stringify({
        orderId: 'DH1',
        payments: [{ amount: '10000.50', paymentMethod: 'QR', status: 'SUCCESS' }],
      }),
    })
    const { transactionId, payments } = Made.parse(await made.json())
    const paymentId = payments[0]?.id ?? ''
    const path = `/v1/transactions/${transactionId}`
    const known = async () => (await fetch(service.url + path, withKey())).status === 200
    await waitUntil(known, { what: 'the notification' })
    expect(Transaction.parse(await get(`${path}?wait=30`))).toMatchObject({
      state: 'paid',
      final: true,
      orderId: 'DH1',
      payments: [{ id: paymentId, amount: '10000.50', refundableAmount: '10000.50' }],
      ipnCount: 1,
    })

    const asked = await fetch(`${service.url}/v1/payments/${paymentId}/refunds`, {
      method: 'POST',
      ...withKey(KEY, { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      body: JSON.stringify({ amount: '1', receiver: RECEIVER }),
    })
    expect(asked.status).toBe(202)
    const { id } = Refund.parse(await asked.json())
    expect(Refund.parse(await get(`/v1/refunds/${id}?wait=30`))).toMatchObject({
      status: 'succeeded',
      inferred: false,
      amount: '1',
    })
    const refunded = async () =>
      Transaction.parse(await get(path)).payments[0]?.refundableAmount === '9999.50'
    await waitUntil(refunded, { what: 'the figures after the refund' })

    const cards = '/v2/vc/virtual-cards'
    const card = { merchantCode: MERCHANT.merchantCode, status: 'ACTIVED' }
    expect(await get(`${cards}?status=ACTIVED`)).toMatchObject({ data: { docs: [card, card] } })
    expect(await get(`${cards}/VC-${MERCHANT.merchantCode}-0001`)).toMatchObject({ data: card })

    const calls = Calls.parse(await (await fetch(`${sandbox.url}/sandbox/calls`)).json()).data
    const asking = calls.filter(({ command }) => /^[A-Z_]+$/.test(command))
    expect(new Set(asking.map(({ command }) => command))).toEqual(new Set(['QUERY_PT', 'REFUND']))
    expect(asking.filter(({ code, signature }) => code !== 0 || signature !== 'verified')).toEqual(
      [],
    )

    service.child.kill('SIGTERM')
    expect(await service.ended).toBe(0)
    sandbox.child.kill('SIGTERM')
    expect(await sandbox.ended).toBe(0)
    if (shared === ACCOUNT) expect(sandbox.output().out).toMatch(/^Card tokens +client shop$/m)
    expect(service.output().out + sandbox.output().out).not.toMatch(
      new RegExp(`${MERCHANT.secret}|hunter2|token-for-cards`),
    )
  },
)

it('the sandbox prints its accounts, and the well-known secrets of the demo', async () => {
  const demo = await startSandboxProcess({ SANDBOX_PORT: '0' })
  const readOutput = () => demo.output().out
  await waitUntil(async () => readOutput().includes('Ctrl-C'), { what: 'the whole banner' })
  expect(readOutput()).toMatch(/^Merchant +DEMO, secret demo-secret-of-the-sandbox$/m)
  expect(readOutput()).toMatch(/^Card tokens +client DEMO, secret sandbox-DEMO$/m)
})

it('the sandbox does not start with a wrong setting, which it names', async () => {
  await expect(startSandboxProcess({ SANDBOX_PORT: 'x' })).rejects.toThrow(
    /The sandbox gateway cannot start:\n {2}SANDBOX_PORT must /,
  )
})
