import { Hono } from 'hono'
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import type { ShopContext } from './track-order.ts'

const Final = z.object({
  transactionId: z.string(),
  data: z.object({
    state: z.enum(['pending', 'paid', 'partially_refunded', 'refunded', 'failed']),
  }),
})

/** Creates the route that the service sends final states to, and `subscribe`, which registers it there. */
export function createReceiver({ orders, ipn }: ShopContext) {
  let webhook: Webhook | undefined
  const app = new Hono()

  app.post('/hooks', async (c) => {
    const body = await c.req.text() // the exact bytes that arrived
    let event: unknown
    try {
      event = webhook?.verify(body, c.req.header())
    } catch {
      return c.json({ error: 'not signed with our secret' }, 400)
    }
    if (event === undefined) return c.json({ error: 'not registered yet' }, 503)
    const { transactionId, data } = Final.parse(event)
    const order = (await orders.list()).find((one) => one.transactionId === transactionId)
    // The same event can arrive more than once: storing its state again changes nothing.
    if (order) {
      await orders.change(order.id, (stored) => {
        stored.reported = data.state
      })
    }
    return c.body(null, 204)
  })

  /** In production, store the secret: it is shown only once. */
  async function subscribe(shopUrl: string): Promise<void> {
    const endpoint = { url: `${shopUrl}/hooks`, types: ['transaction.final' as const] }
    const { secret } = await ipn.webhookEndpoints.create(endpoint)
    webhook = new Webhook(secret)
  }
  return { app, subscribe }
}
