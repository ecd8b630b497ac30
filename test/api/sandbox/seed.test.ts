import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { computeSecureHash } from '../../../src/gateway/signature.ts'
import { compareAmounts } from '../../../src/money.ts'
import { type SandboxRig, SHOP, useMerchant, useSandbox } from '../../support/sandbox.ts'
import { waitUntil } from '../../support/wait-until.ts'

const Population = z.object({
  transactions: z.array(
    z.object({
      transactionId: z.string(),
      createdAt: z.string(),
      payments: z.array(
        z.object({
          id: z.string(),
          amount: z.string(),
          refundedAmount: z.string(),
          status: z.string(),
          paymentMethod: z.string(),
        }),
      ),
    }),
  ),
  refunds: z.array(z.object({ requestId: z.string(), status: z.string() })),
  cards: z.array(z.string()),
})

async function seed({ control }: SandboxRig, number: number, more: object = {}) {
  const answer = await control('POST', '/seed', { seed: number, transactions: 60, ...more })
  expect(answer.status).toBe(201)
  return await answer.text()
}

const read = (text: string) => Population.parse(JSON.parse(text))

function ask({ url }: SandboxRig, transactionId: string): Promise<Response> {
  const params = {
    svc_Command: 'QUERY_PT',
    svc_MerchantCode: SHOP.merchantCode,
    svc_TransactionID: transactionId,
    svc_Version: '1',
  }
  const rule = { prefix: 'svc', exclude: [] }
  const signed = { ...params, svc_SecureHash: computeSecureHash(params, SHOP.secret, rule) }
  return fetch(`${url}/api/v1/paygate/svcpay`, { method: 'POST', body: JSON.stringify(signed) })
}

describe('a seeded population', () => {
  it('is the same for the same seed in every sandbox, and different for another seed', async () => {
    const [one, other] = [await useSandbox({ seed: 5 }), await useSandbox({ seed: 6 })]
    await other.control('POST', '/transactions', { payments: [], ipn: false })
    const first = await seed(one, 42)
    expect(await seed(other, 42)).toBe(first)
    const third = read(await seed(one, 43))
    const ids = new Set(read(first).transactions.map((made) => made.transactionId))
    expect(third.transactions.filter((made) => ids.has(made.transactionId))).toEqual([])
    expect(read(first).transactions[0]?.createdAt).toBe('2026-01-01T00:00:00.000Z')
  })

  it('has every status and method, several payments, decimals, refunds and cards', async () => {
    const population = read(await seed(await useSandbox(), 7, { transactions: 300 }))
    const payments = population.transactions.flatMap((made) => made.payments)
    expect(population.transactions).toHaveLength(300)
    const valuesOf = (name: 'status' | 'paymentMethod') =>
      new Set(payments.map((payment) => payment[name]))
    expect(valuesOf('status')).toEqual(new Set(['SUCCESS', 'FAILED', 'PROCESSING']))
    expect(valuesOf('paymentMethod')).toEqual(new Set(['QR', 'ATM', 'CC']))
    const counts = new Set(population.transactions.map((made) => made.payments.length))
    expect(counts).toEqual(new Set([0, 1, 2]))
    expect(payments.some(({ amount }) => /\.\d{4}$/.test(amount))).toBe(true)
    expect(new Set(population.refunds.map((refund) => refund.status))).toEqual(
      new Set(['succeeded', 'failed', 'accepted']),
    )
    expect(population.cards).toHaveLength(14)
    const tooMuch = payments.filter((one) => compareAmounts(one.refundedAmount, one.amount) > 0)
    expect(tooMuch).toEqual([])
  })

  it('is what the gateway returns, and replaces the population of the same seed', async () => {
    const rig = await useSandbox()
    const before = await seed(rig, 42)
    const ledger = await (await rig.control('GET', '/ledger')).json()
    const [payment] = read(before).transactions.flatMap((made) => made.payments)
    await rig.control('PATCH', `/payments/${payment?.id}`, { status: 'CHANGED' })
    expect(await seed(rig, 42)).toBe(before)
    expect(await (await rig.control('GET', '/ledger')).json()).toEqual(ledger)
    const paid = read(before).transactions.find((made) => made.payments.length === 2)
    expect(await (await ask(rig, paid?.transactionId ?? '')).json()).toMatchObject({
      svc_ResponseCode: 0,
      svc_ResponseData: paid?.payments.map(({ id, status }) => ({ id, status })),
    })
  })

  it('sends a notification of each transaction only on request', async () => {
    const { ipnUrl, received } = await useMerchant()
    const rig = await useSandbox({ ipnUrl })
    await seed(rig, 1)
    await seed(rig, 2, { transactions: 5, ipn: { copies: 1 } })
    await waitUntil(() => received.length === 5, { what: 'five notifications' })
    const notified = (await rig.readCalls('ipn')).map((entry) => entry.transactionId)
    const { transactions } = read(await seed(rig, 2, { transactions: 5 }))
    expect(notified.toSorted()).toEqual(transactions.map((made) => made.transactionId).toSorted())
  })
})

describe('the order of faults', () => {
  /** Sends the same sequence of requests while `noise` notifications are delivered. */
  async function play(rig: SandboxRig, noise: number): Promise<number[]> {
    const { transactions } = read(await seed(rig, 42))
    await rig.control('DELETE', '/faults')
    await rig.control('POST', '/faults', { command: '*', kind: 'http500', probability: 0.5 })
    const id = transactions[0]?.transactionId ?? ''
    if (noise > 0) await rig.control('POST', `/transactions/${id}/ipn`, { copies: noise })
    const statuses: number[] = []
    for (let asked = 0; asked < 30; asked += 1) {
      const answer = asked % 3 === 0 ? await rig.readCards('', { token: 'x' }) : await ask(rig, id)
      statuses.push(answer.status)
    }
    return statuses
  }

  it('is the same for the same seed, independent of earlier requests and of deliveries', async () => {
    const { ipnUrl } = await useMerchant()
    const [one, other] = [await useSandbox({ seed: 1 }), await useSandbox({ seed: 2, ipnUrl })]
    const first = await play(one, 0)
    expect(new Set(first)).toEqual(new Set([200, 401, 500]))
    expect(await play(other, 50)).toEqual(first)
    expect(await play(one, 0)).toEqual(first)
  })
})
