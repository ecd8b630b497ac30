import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serve } from '@hono/node-server'
import { createClient } from '@ipn-processor/client'
import { createOrderBook, createShop } from './shop.ts'
import { createCheckout, playStory } from './story.ts'

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

/**
 * Starts the IPN processor in demo mode, as `npm start` runs it, with its own ports and files; resolves when it is ready.
 * @throws Error with its output if it exits before it is ready
 */
async function startDemoService() {
  const folder = await mkdtemp(join(tmpdir(), 'order-system-'))
  // Started as root, the database runs as another user, which needs access to its files.
  await chmod(folder, 0o755)
  const apiKey = `example_${randomBytes(24).toString('base64url')}`
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/main.ts'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: {
      PATH: process.env.PATH,
      DEMO: 'true',
      PORT: '0',
      SANDBOX_PORT: '0',
      DATA_DIR: join(folder, 'data'),
      LOG_LEVEL: 'error',
      API_KEY: apiKey,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    // Ctrl-C stops this program only, which then stops the service.
    detached: true,
  })
  const ended = once(child, 'exit')
  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  let printed = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    printed += text
    if (!printed.includes('Stop with Ctrl-C.')) continue
    const url = /^Service +(\S+)/m.exec(printed)?.[1]
    const sandboxUrl = /^Sandbox +(\S+)/m.exec(printed)?.[1]
    if (url && sandboxUrl) return { url, sandboxUrl, apiKey, stop }
  }
  await stop()
  throw new Error(`The service exited before it was ready:\n${printed}`)
}

main().catch((error: unknown) => {
  const isStopped = error instanceof Error && error.name === 'AbortError'
  console.error(isStopped ? 'Stopped.' : error)
  process.exitCode = 1
})
