import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { Counter } from 'prom-client'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { createSlots } from '../platform/concurrency/slots.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { type Cidr, compileNetworks, findClientAddress, nameNetwork } from './client-address.ts'

/** Limits on slow, idle and greedy clients (times in ms). */
export const SERVER_LIMITS = {
  /** Until the head of a request is complete; for the first request counted from the connection. */
  headersMs: 10_000,
  /** Until a request is complete; a backstop behind the body time-out, which sends a response of its own. */
  requestMs: 25_000,
  /** Between two requests. A proxy has to close idle connections before: common ones do after at most 60 s. */
  keepAliveMs: 65_000,
  /** How often the first two are checked. */
  checkMs: 1_000,
  connections: 12_000,
  /** Of one IPv4 address or one IPv6 /64, unless it is a trusted proxy. */
  connectionsPerNetwork: 2_000,
}

export type ServerLimits = typeof SERVER_LIMITS

/**
 * Creates an HTTP server that slow clients cannot block: a slow request gets 408, idle connections and those above the
 * limits are closed. A response may take any time, because `wait` holds requests open.
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
      // After so long without data probes detect a client that vanished.
      keepAliveInitialDelay: 30_000,
    },
    listener,
  )
  server.maxConnections = limits.connections
  limitConnections(server, limits.connectionsPerNetwork, policy)
  return server
}

/** An address cannot be listened on; the message names the setting that it comes from. */
export class ListenError extends Error {}

/** Where a server listens, and the settings that say so; port 0 is any that is free. */
export type Binding = { host: string; port: number; settings: { host: string; port: string } }

const EXPLAINED_CODES = new Map([
  ['EADDRINUSE', 'another program does'],
  ['EACCES', 'this user may not'],
  ['EADDRNOTAVAIL', 'no address of this machine'],
])

/** Binds a server, and returns its URL. @throws ListenError */
export async function listen(server: Server, { host, port, settings }: Binding): Promise<string> {
  const name = host.includes(':') ? `[${host}]` : host
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (cause) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    const what = `cannot listen on ${name}:${port} (${EXPLAINED_CODES.get(why) ?? why})`
    const { host: ofHost, port: ofPort } = settings
    throw new ListenError(`${ofPort}: ${what}; set another ${ofPort} or ${ofHost}`, { cause })
  }
  const address = server.address()
  return `http://${name}:${typeof address === 'object' && address !== null ? address.port : port}`
}

/** Who is never refused, where refusals are counted, and where they are logged. */
export type ConnectionPolicy = {
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
 * Gives each network at most `perNetwork` of the server's connections, so that one client cannot keep all others out.
 * One more is closed before a byte of it is read. Trusted proxies speak for many clients: theirs count only towards the
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
  // Before the parser, which gets its turn after this listener, has anything to read.
  server.prependListener('connection', (socket) => {
    const address = findClientAddress(socket.remoteAddress ?? '', undefined, isTrusted)
    if (isTrusted(address)) return
    const release = open.tryTake(nameNetwork(address))
    if (release) return void socket.once('close', release)
    socket.destroy()
    note('network', address)
  })
  // Node itself closes those beyond `maxConnections`.
  server.on('drop', (peer) => note('total', peer?.remoteAddress ?? ''))
}
