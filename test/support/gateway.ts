import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { type Config, readConfig } from '../../src/config/config.ts'
import { createBreakers } from '../../src/gateway/breakers.ts'
import { createGatewayClient, type GatewaySettings } from '../../src/gateway/client.ts'
import { makeEncryption } from './encryption.ts'
import { listenOn } from './ports.ts'
import { MERCHANT, NEVER } from './service.ts'

/** Makes the HMACs of the clients' requests. */
export const ENCRYPTION = makeEncryption()

/** Creates a gateway client for an address, closed after the test. */
export function makeClient(
  baseUrl: string,
  config: Partial<Config> = {},
  settings: Partial<GatewaySettings> = {},
) {
  const client = createGatewayClient({
    baseUrl,
    config: {
      ...readConfig({ DEMO: 'true' }),
      ...{ accounts: [MERCHANT], GATEWAY_TIMEOUT_MS: 5_000, GATEWAY_MAX_CONCURRENCY: 4 },
      ...config,
    },
    encryption: ENCRYPTION,
    breakers: createBreakers(NEVER),
    ...settings,
  })
  onTestFinished(() => client.close())
  const ask = (transactionId = 'T1', signal?: AbortSignal) =>
    client.queryPayments({ merchantCode: MERCHANT.merchantCode, transactionId }, signal)
  return { client, ask }
}

/** Listens on a free local port until the test ends, then closes all connections. */
export async function listen(server: Server): Promise<number> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  const port = await listenOn(server)
  onTestFinished(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return port
}

export type Seen = { path: string; headers: IncomingMessage['headers']; body: string }

/** Starts a gateway with responses the sandbox never gives; `seen` has every request. */
export async function serve(
  respond: (response: ServerResponse, request: Seen) => void,
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const { url: path = '', headers } = request
    const one = { path, headers, body: await text(request) }
    seen.push(one)
    respond(response, one)
  })
  return { url: `http://127.0.0.1:${await listen(server)}`, seen }
}
