import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { Counter } from 'prom-client'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { createSlots } from '../platform/concurrency/slots.ts'
import { readErrorCode } from '../platform/error-code.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { type Cidr, compileNetworks, findClientAddress, nameNetwork } from './client-address.ts'

export const SERVER_LIMITS = {
  /** Until the headers are complete; for a connection's first request, measured from when it was opened. */
  headersMs: 10_000,
  /** Until the request is complete. The body time-out normally fires first and sends a response of its own. */
  requestMs: 25_000,
  /** Between two requests. Proxies must close idle connections earlier: common ones do so after at most 60 s. */
  keepAliveMs: 65_000,
  /** How often `headersMs` and `requestMs` are checked. */
  checkMs: 1_000,
  connections: 12_000,
  /** Per IPv4 address or IPv6 /64, unless it is a trusted proxy. */
  connectionsPerNetwork: 2_000,
}

export type ServerLimits = typeof SERVER_LIMITS

/**
 * Creates an HTTP server that slow clients cannot block: slow requests get 408, and connections that are idle or
 * above the limits are closed. A response may take any time, because `wait` holds requests open.
 */
export function openServer(
  listener: RequestListener,
  limits: ServerLimits,
  policy: ConnectionPolicy,
): Server {
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkMs,
      keepAlive: true,
      // How long without data before probes look for clients that vanished.
      keepAliveInitialDelay: 30_000,
    },
    listener,
  )
  server.maxConnections = limits.connections
  limitConnections(server, limits.connectionsPerNetwork, policy)
  return server
}

/** A server cannot listen on an address. The message names the setting to change. */
export class ListenError extends Error {}

/** Where a server listens, and the settings that say so. Port 0 means any free port. */
export type Binding = { host: string; port: number; settings: { host: string; port: string } }

const EXPLAINED_CODES = new Map([
  ['EADDRINUSE', 'another program does'],
  ['EACCES', 'this user may not'],
  ['EADDRNOTAVAIL', 'no address of this machine'],
])

/** Starts listening and returns the server's URL. @throws ListenError */
export async function listen(server: Server, { host, port, settings }: Binding): Promise<string> {
  const name = host.includes(':') ? `[${host}]` : host
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    const why = readErrorCode(cause) ?? ''
    const what = `cannot listen on ${name}:${port} (${EXPLAINED_CODES.get(why) ?? why})`
    const advice = `set another ${settings.port} or ${settings.host}`
    throw new ListenError(`${settings.port}: ${what}; ${advice}`, { cause })
  }
  const address = server.address()
  return `http://${name}:${typeof address === 'object' && address !== null ? address.port : port}`
}

type ConnectionPolicy = {
  proxies: readonly Cidr[]
  refused: Counter<'reason'>
  log: Pick<Log, 'warn'>
}

const EXPLAINED = {
  network:
    'connections were refused, because their network has as many open as one may have; if this is your proxy, name it in TRUSTED_PROXIES',
  total: 'connections were refused, because this process has as many open as it takes',
}

/**
 * Limits the connections of each network, so that one client cannot keep out all others. An excess connection is
 * closed before any of it is read. Trusted proxies serve many clients, so their connections count only towards the
 * total.
 */
export function limitConnections(
  server: Server,
  perNetwork: number,
  { proxies, refused, log }: ConnectionPolicy,
): void {
  const isTrusted = compileNetworks(proxies)
  const open = createSlots(Number.POSITIVE_INFINITY, { perHolder: perNetwork })
  const throttle = createThrottle(60_000)
  function note(reason: keyof typeof EXPLAINED, address: string): void {
    refused.inc({ reason })
    const suppressed = throttle(reason)
    if (suppressed) log.warn({ address, ...suppressed }, EXPLAINED[reason])
  }
  // Prepended, so that it runs before the parser can read anything.
  server.prependListener('connection', (socket) => {
    const address = findClientAddress(socket.remoteAddress ?? '', undefined, isTrusted)
    if (isTrusted(address)) return
    const release = open.tryTake(nameNetwork(address))
    if (release) return void socket.once('close', release)
    socket.destroy()
    note('network', address)
  })
  // Node itself closes the connections beyond `maxConnections`.
  server.on('drop', (peer) => note('total', peer?.remoteAddress ?? ''))
}
