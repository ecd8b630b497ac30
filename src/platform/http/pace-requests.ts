import { setTimeout as pause } from 'node:timers/promises'
import { createMiddleware } from 'hono/factory'
import { DomainError } from '../../errors.ts'
import { type Cidr, compileNetworks, findClientAddress } from './client-address.ts'
import type { HttpEnv } from './env.ts'
import { createNetworkPace } from './network-pace.ts'

/** Of one network: far more than all orchestrators and scrapers together need. */
const PER_S = 200
/** Also how long a request is held that is refused, or a client without a pause would gain by refusals (ms). */
const MAX_WAIT_MS = 1_000

/**
 * Spaces out requests that need no key, by the network of the client. What exceeds the pace waits up to a second, and
 * is refused beyond that: `rate_limited`.
 */
export function paceRequests(proxies: readonly Cidr[]) {
  const takeTurn = createNetworkPace(PER_S, MAX_WAIT_MS)
  const isTrusted = compileNetworks(proxies)
  return createMiddleware<HttpEnv>(async (c, next) => {
    const peer = c.env.incoming.socket.remoteAddress ?? ''
    const waitMs = takeTurn(findClientAddress(peer, c.req.header('x-forwarded-for'), isTrusted))
    if (waitMs === undefined) {
      // Jittered, so that those who wait do not all come back at once.
      await pause(MAX_WAIT_MS * (0.5 + Math.random()))
      const detail = `This network may send ${PER_S} requests per second here`
      throw new DomainError('rate_limited', detail, { retryAfterS: 1 })
    }
    if (waitMs > 0) await pause(waitMs)
    await next()
  })
}
