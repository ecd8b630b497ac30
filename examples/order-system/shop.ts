import {
  AbortError,
  type Client,
  ExceedsRefundableError,
  IpnProcessorError,
} from '@ipn-processor/client'
import { Hono } from 'hono'
import { z } from 'zod'
import type { OpenCheckout } from './checkout.ts'
import type { OrderBook, Return } from './orders.ts'
import { createReceiver } from './receive-webhooks.ts'
import { isRefusal, sendReturn, trackPayment, trackReturn } from './track-order.ts'

const Amount = z.string().regex(/^\d{1,15}(\.\d{1,4})?$/, 'must be a decimal like "250000"')
const OrderInput = z.strictObject({ amount: Amount })
/**
 * `returnId` is the shop's number of the return, which is made only once. Default `amount`: all; with `surplus`, all that
 * was paid for the order more than once.
 */
const ReturnInput = z.strictObject({
  returnId: z.string().min(1).max(100),
  surplus: z.boolean().default(false),
  amount: Amount.optional(),
  reason: z.string().max(500).optional(),
})

/** How long a customer waits for the response to a refund; it then continues in the background (ms). */
const RESPOND_WITHIN_MS = 5_000

type ShopParts = { orders: OrderBook; ipn: Client; openCheckout: OpenCheckout }

/**
 * Creates the shop: its routes, `subscribe`, which registers its webhook, and `resume`, which continues the work that
 * was open when it stopped.
 */
export function createShop({ orders, ipn, openCheckout }: ShopParts) {
  const shop = { orders, ipn }
  const receiver = createReceiver(shop)
  const app = new Hono().route('/', receiver.app)

  app.onError((error, c) => {
    if (error instanceof z.ZodError) return c.json({ error: z.prettifyError(error) }, 422)
    if (error instanceof SyntaxError) return c.json({ error: 'the body is not JSON' }, 400)
    console.error(error)
    return c.json({ error: 'internal error' }, 500)
  })

  app.post('/orders', async (c) => {
    const { amount } = OrderInput.parse(await c.req.json())
    const { transactionId, payAt } = await openCheckout(amount)
    const currency = 'VND'
    const order = await orders.add({
      amount,
      currency,
      transactionId,
      status: 'pending',
      returns: [],
    })
    runInBackground(trackPayment(shop, order))
    return c.json({ ...order, payAt }, 201)
  })

  app.get('/orders/:id', async (c) => {
    const order = await orders.find(c.req.param('id'))
    return order ? c.json(order) : c.json({ error: 'no such order' }, 404)
  })

  app.post('/orders/:id/refund', async (c) => {
    const { returnId, surplus, ...params } = ReturnInput.parse(await c.req.json())
    const order = await orders.find(c.req.param('id'))
    if (!order) return c.json({ error: 'no such order' }, 404)
    if (!order.paymentId) return c.json({ error: 'the order is not paid' }, 409)
    const request = { ...params, metadata: { orderId: order.id, returnId } }
    const refund = surplus
      ? ipn.refunds.prepareSurplus(order.transactionId, request)
      : ipn.refunds.prepare(order.paymentId, request)
    // Key and parameters are stored before anything is sent: a crash after this loses no money.
    const stored = await orders.change(order.id, ({ returns }) => {
      if (returns.some((one) => one.returnId === returnId)) return
      returns.push({ returnId, refund, status: 'requested' })
    })
    const [one] = stored.returns.filter((known) => known.returnId === returnId)
    if (!one) throw new Error(`return ${returnId} was not stored`)
    try {
      await sendReturn(shop, order, one, RESPOND_WITHIN_MS)
    } catch (error) {
      if (isRefusal(error)) return c.json({ error: explain(error) }, 409)
      // The request may have arrived: it continues in the background, under the same key.
      if (!(error instanceof IpnProcessorError)) throw error
    }
    runInBackground(trackReturn(shop, order, one))
    return c.json(await orders.find(order.id), 202)
  })

  /** Call this at every start. */
  async function resume(): Promise<void> {
    for (const order of await orders.list()) {
      if (order.status === 'pending') runInBackground(trackPayment(shop, order))
      for (const one of order.returns.filter(isOpen)) runInBackground(trackReturn(shop, order, one))
    }
  }
  return { app, resume, subscribe: receiver.subscribe }
}

function isOpen({ status }: Return): boolean {
  return !['refused', 'succeeded', 'failed', 'needs_review'].includes(status)
}

function explain(error: Error): string {
  if (!(error instanceof ExceedsRefundableError)) return error.message
  return `at most ${error.refundableAmount} can be refunded`
}

/** The shop stops by aborting its client; `resume` continues what was waiting then. */
function runInBackground(work: Promise<void>): void {
  work.catch((error: unknown) => {
    if (!(error instanceof AbortError)) console.error(error)
  })
}
