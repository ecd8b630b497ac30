import { once } from 'node:events'
import { serve } from '@hono/node-server'
import { createClient } from '@ipn-processor/client'
import { createCheckout } from './checkout.ts'
import { startDemoService } from './demo-service.ts'
import { createOrderBook } from './orders.ts'
import { playStory } from './play-story.ts'
import { createShop } from './shop.ts'

/** Starts the service and the shop, plays a customer, and removes all files. */
async function main(): Promise<void> {
  const closing = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => closing.abort())
  console.log('Starting the IPN processor with its sandbox gateway, and a shop.\n')
  const service = await startDemoService()
  try {
    const ipn = createClient({
      baseUrl: service.url,
      apiKey: service.apiKey,
      // Background work retries until it succeeds; calls that a customer waits for have a time-out.
      retries: Number.POSITIVE_INFINITY,
      signal: closing.signal,
    })
    const openCheckout = createCheckout(service.sandboxUrl)
    const shop = createShop({ orders: createOrderBook(), ipn, openCheckout })
    await shop.resume()
    const server = serve({ fetch: shop.app.fetch, hostname: '127.0.0.1', port: 0 })
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    try {
      const shopUrl = `http://127.0.0.1:${port}`
      // The demo may call receivers on its own machine.
      await shop.subscribe(shopUrl)
      await playStory(shopUrl, console.log, closing.signal)
    } finally {
      closing.abort()
      server.close()
      if ('closeAllConnections' in server) server.closeAllConnections()
    }
  } finally {
    await service.stop()
  }
}

main().catch((error: unknown) => {
  const isStopped = error instanceof Error && error.name === 'AbortError'
  console.error(isStopped ? 'Stopped.' : error)
  process.exitCode = 1
})
