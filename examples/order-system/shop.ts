import { Hono } from 'hono'
import {
  AbortError,
  type Client,
  ExceedsRefundableError,
  IpnProcessorError,
} from 'ipn-processor/client'
import { z } from 'zod'
import type { OpenCheckout } from './checkout.ts'
import type { OrderBook, Return } from './orders.ts'
import { isRefusal, sendReturn, settlePayment, settleReturn } from './settle.ts'

const Amount = z.string().regex(/^\d{1,15}(\.\d{1,4})?$/, 'must be a decimal like "250000"')
const OrderWish = z.strictObject({ amount: Amount })
/** `returnId` is the shop's number of the return: asked for twice, it is one. `amount` left out means all. */
const ReturnWish = z.strictObject({
  returnId: z.string().min(1).max(100),
  amount: Amount.optional(),
  reason: z.string().max(500).optional(),
})

/** How long a customer waits for the answer about a refund; after that it goes on without her (ms). */
const ANSWER_WITHIN_MS = 5_000

type ShopParts = { orders: OrderBook; ipn: Client; openCheckout: OpenCheckout }

/** The shop: its routes, and what takes up again whatever was open when it stopped. */
export function createShop({ orders, ipn, openCheckout }: ShopParts) {
  const books = { orders, ipn }
  const app = new Hono()

  app.onError((error, c) => {
    if (error instanceof z.ZodError) return c.json({ error: z.prettifyError(error) }, 422)
    if (error instanceof SyntaxError) return c.json({ error: 'the body is not JSON' }, 400)
    console.error(error)
    return c.json({ error: 'something went wrong here' }, 500)
  })

  app.post('/orders', async (c) => {
    const { amount } = OrderWish.parse(await c.req.json())
    const { transactionId, payAt } = await openCheckout(amount)
    const order = await orders.add({ amount, transactionId, status: 'pending', returns: [] })
    runBehind(settlePayment(books, order))
    return c.json({ ...order, payAt }, 201)
  })

  app.get('/orders/:id', async (c) => {
    const order = await orders.find(c.req.param('id'))
    return order ? c.json(order) : c.json({ error: 'no such order' }, 404)
  })

  app.post('/orders/:id/refund', async (c) => {
    const wish = ReturnWish.parse(await c.req.json())
    const order = await orders.find(c.req.param('id'))
    if (!order) return c.json({ error: 'no such order' }, 404)
    if (!order.paymentId) return c.json({ error: 'the order is not paid' }, 409)
    const { returnId, ...rest } = wish
    const refund = ipn.refunds.prepare(order.paymentId, rest)
    // Key and wish are stored before anything is sent: a crash from here on costs nobody anything.
    const stored = await orders.change(order.id, ({ returns }) => {
      if (returns.some((known) => known.returnId === returnId)) return
      returns.push({ returnId, refund, status: 'requested' })
    })
    const [one] = stored.returns.filter((known) => known.returnId === returnId)
    if (!one) throw new Error(`return ${returnId} was not stored`)
    try {
      await sendReturn(books, order, one, ANSWER_WITHIN_MS)
    } catch (error) {
      if (isRefusal(error)) return c.json({ error: explain(error) }, 409)
      // Nobody knows whether it arrived. It goes on below, under the same key.
      if (!(error instanceof IpnProcessorError)) throw error
    }
    runBehind(settleReturn(books, order, one))
    return c.json(await orders.find(order.id), 202)
  })

  /** To be called at every start. */
  async function resume(): Promise<void> {
    for (const order of await orders.list()) {
      if (order.status === 'pending') runBehind(settlePayment(books, order))
      for (const one of order.returns.filter(isOpen)) runBehind(settleReturn(books, order, one))
    }
  }
  return { app, resume }
}

function isOpen({ status }: Return): boolean {
  return !['refused', 'succeeded', 'failed', 'needs_review'].includes(status)
}

function explain(error: Error): string {
  if (!(error instanceof ExceedsRefundableError)) return error.message
  return `no more than ${error.refundableAmount} is left to refund`
}

/** The shop stops by aborting its client: what it waits for then is taken up by `resume`. */
function runBehind(work: Promise<void>): void {
  work.catch((error: unknown) => {
    if (!(error instanceof AbortError)) console.error(error)
  })
}
