import { createServer, type RequestListener, type Server } from 'node:http'

/** What a client may keep this process waiting for (ms). */
export type ServerLimits = {
  /** Until the head of a request is whole; counted from the connection for the first one. */
  headersMs: number
  /** Until a whole request is there: the net under the time-out of bodies, which answers by itself. */
  requestMs: number
  /** Between two requests of a connection. */
  keepAliveMs: number
  /** How often the first two are looked at. */
  checkMs: number
  connections: number
}

/**
 * A proxy in front has to be the one that closes an idle connection, or a request of it would meet a
 * closing one: the usual ones do so after at most 60 s.
 */
export const SERVER_LIMITS: ServerLimits = {
  headersMs: 10_000,
  requestMs: 25_000,
  keepAliveMs: 65_000,
  checkMs: 1_000,
  connections: 12_000,
}

/** A client that vanished without a word is found out about by the system's own probes (ms). */
const PROBE_AFTER_MS = 30_000

/**
 * An HTTP server that nobody holds up: who is slow is answered 408 and cut off, who is idle is cut off,
 * and connections past the limit are closed as they come. Answers may take any time: readers wait.
 */
export function openServer(listener: RequestListener, limits: ServerLimits): Server {
  const server = createServer(
    {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkMs,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    },
    listener,
  )
  server.maxConnections = limits.connections
  return server
}
