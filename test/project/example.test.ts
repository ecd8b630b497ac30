import { type Client, createClient } from '@ipn-processor/client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'

import { createOrderBook, createShop, type Order } from '../../examples/order-system/shop.ts'
import { createCheckout } from '../../examples/order-system/story.ts'
import { readPage } from '../support/api.ts'
import { type Fault, makeFaultyFetch } from '../support/faulty-fetch.ts'
import { serve } from '../support/gateway.ts'
import { PATIENT_REFUNDS } from '../support/refunds.ts'
import { KEY } from '../support/service.ts'
import { keepLog } from '../support/sync.ts'
import { useRefundRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'
import { useWebhookRig } from '../support/webhooks.ts'

describe('the shop', () => {
  const rig = useRefundRig({ settings: PATIENT_REFUNDS })
  const failing = useRefundRig({
    settings: { ...PATIENT_REFUNDS, REFUND_CONFIRM_FAILED_MS: '50' },
    refundMode: { guardsBalance: false, settleMs: 600_000 },
  })

  /** Starts a shop; its client is closed after the test. */
  function openShop(orders = createOrderBook(), of = rig) {
    const { fetch, faults } = makeFaultyFetch()
    const closing = new AbortController()
    onTestFinished(() => closing.abort())
    const baseUrl = of.service.url
    const ipn: Client = createClient({ baseUrl, apiKey: KEY, fetch, signal: closing.signal })
    const { app, resume } = createShop({
      orders,
      ipn,
      openCheckout: createCheckout(of.sandbox.url),
    })
    const post = (path: string, body: object) =>
      app.request(path, { method: 'POST', body: JSON.stringify(body) })
    return { orders, faults, resume, post, close: () => closing.abort() }
  }

  type Shop = ReturnType<typeof openShop>

  const Opened = z.object({ id: z.string(), payAt: z.string() })
  const Refused = z.object({ error: z.string() })
  const open = async ({ post }: Shop, amount: string) =>
    Opened.parse(await (await post('/orders', { amount })).json())

  async function sell(shop: Shop): Promise<Order & { paymentId: string }> {
    const { orders } = shop
    const { id, payAt } = await open(shop, '100')
    await fetch(payAt, { method: 'PATCH', body: '{"status":"SUCCESS"}' })
    const paid = async () => (await orders.find(id))?.status === 'paid'
    await waitUntil(paid, { what: 'the order is paid' })
    const order = await orders.find(id)
    return { paymentId: '', ...(order ?? expect.fail('no order')) }
  }

  async function untilReturned({ orders }: Shop, { id }: Order) {
    const succeeded = async () => (await orders.find(id))?.returns[0]?.status === 'succeeded'
    await waitUntil(succeeded, { what: 'the refund succeeded' })
  }

  it.each<Fault>(['refuse', 'lose_answer'])(
    'that stops after a request was lost (%s) takes it up at its next start; the money moves once',
    async (fault) => {
      const first = openShop()
      const order = await sell(first)
      first.faults.push(...Array<Fault>(100).fill(fault))
      const asked = first.post(`/orders/${order.id}/refund`, { returnId: 'R', amount: '40' })
      await waitUntil(() => first.faults.length < 100, { what: 'it was sent' })
      first.close()
      await asked
      const stored = await first.orders.find(order.id)
      expect(stored?.returns).toMatchObject([{ returnId: 'R', status: 'requested' }])
      const second = openShop(first.orders)
      await second.resume()
      await untilReturned(second, order)
      expect(await rig.moved(order.paymentId)).toEqual(['40'])
      expect((await second.orders.find(order.id))?.returns[0]?.bankReference).toMatch(/^\w+$/)
      expect(await second.orders.find(order.id)).toMatchObject({ status: 'partially_refunded' })
    },
  )

  it('refunds a return once, however often and fast it is requested', async () => {
    const shop = openShop()
    const order = await sell(shop)
    const ask = () => shop.post(`/orders/${order.id}/refund`, { returnId: 'R', amount: '40' })
    const answers = await Promise.all([ask(), ask(), ask()])
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202])
    expect((await shop.orders.find(order.id))?.returns).toHaveLength(1)
    await untilReturned(shop, order)
    expect(await rig.moved(order.paymentId)).toEqual(['40'])
  })

  it('does not take an order for paid of which too little was paid, also once its refund failed', async () => {
    const shop = openShop(undefined, failing)
    const { id, payAt } = await open(shop, '250000')
    await fetch(payAt, { method: 'PATCH', body: '{"status":"SUCCESS","amount":"1000"}' })
    const isShort = async () => (await shop.orders.find(id))?.status === 'wrong_amount'
    await waitUntil(isShort, { what: 'the order is short' })
    await shop.post(`/orders/${id}/refund`, { returnId: 'R', amount: '400' })
    const read = async () => (await readPage(await failing.api('/v1/refunds'))).data[0]
    const isSent = async () => (await read())?.status === 'accepted'
    await waitUntil(isSent, { what: 'it is sent' })
    await failing.control('POST', `/refunds/${(await read())?.id}/settle`, { outcome: 'failure' })
    const isEnded = async () => (await shop.orders.find(id))?.returns[0]?.status === 'failed'
    await waitUntil(isEnded, { what: 'the refund failed' })
    expect(await shop.orders.find(id)).toMatchObject({ status: 'wrong_amount' })
  })

  it('asks at its next start what a person decided about a return', async () => {
    const shop = openShop()
    const order = await sell(shop)
    await shop.post(`/orders/${order.id}/refund`, { returnId: 'R', amount: '40' })
    await untilReturned(shop, order)
    await shop.orders.change(order.id, ({ returns: [one] }) => {
      Object.assign(one ?? expect.fail('no return'), { status: 'needs_review' })
    })
    await shop.resume()
    await untilReturned(shop, order)
  })

  it('takes no webhook that it has no secret for', async () => {
    const { post } = openShop()
    const answer = await post('/hooks', { transactionId: 'T', data: { state: 'paid' } })
    expect(answer.status).toBe(503)
  })

  it('reports what is wrong with a request', async () => {
    const shop = openShop()
    const { id } = await sell(shop)
    const refuse = async (path: string, body: object) => {
      const answer = await shop.post(path, body)
      return [answer.status, Refused.parse(await answer.json()).error]
    }
    const path = `/orders/${id}/refund`
    expect(await refuse(path, { returnId: 'R', amount: '101' })).toEqual([
      409,
      'at most 100 can be refunded',
    ])
    expect(await refuse('/orders', { amount: 'ten' })).toEqual([
      422,
      expect.stringContaining('must be a decimal'),
    ])
    expect(await refuse('/orders/7/refund', { returnId: 'R' })).toEqual([404, 'no such order'])
    const { id: unpaid } = await open(shop, '1')
    expect(await refuse(`/orders/${unpaid}/refund`, { returnId: 'R' })).toEqual([
      409,
      'the order is not paid',
    ])
  })
})

describe('the endpoint of the shop', () => {
  const rig = useWebhookRig(keepLog().log)

  it('takes the test event of the service', async () => {
    const ipn = createClient({ baseUrl: rig.service.url, apiKey: KEY })
    const openCheckout = () => Promise.reject(new Error('not used'))
    const shop = createShop({ orders: createOrderBook(), ipn, openCheckout })
    const receiver = await serve(async (response, { body, headers, path }) => {
      const given = Object.entries(headers).map(([name, value]) => [name, String(value)])
      const request = { method: 'POST', body, headers: Object.fromEntries(given) }
      const answer = await shop.app.request(path, request)
      response.writeHead(answer.status).end(await answer.text())
    })
    await shop.subscribe(receiver.url)
    const [endpoint] = (await ipn.webhookEndpoints.list().page()).data
    expect(await ipn.webhookEndpoints.test(endpoint?.id ?? '')).toMatchObject({ status: 204 })
  })
})
