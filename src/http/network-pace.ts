import { setTimeout as pause } from 'node:timers/promises'
import { createMiddleware } from 'hono/factory'
import { DomainError } from '../errors.ts'
import { type Cidr, compileNetworks, findClientAddress, nameNetwork } from './client-address.ts'
import type { HttpEnv } from './problems.ts'

/** Takes a request's turn. @returns how long it has to wait for it (ms), or undefined if that is too long */
export type NetworkPace = (address: string) => number | undefined

/** About 1 MB. Beyond it the network that was silent for longest is forgotten. */
const MAX_NETWORKS = 10_000

/**
 * Spaces out the requests of each network for what needs no key: the first ones of a second have their turn at once,
 * and a client that asks without a pause waits, which slows it down instead of everybody else.
 * @param perS requests of one network per second
 * @param maxWaitMs a request that would wait longer has no turn
 * @param now monotonic clock (ms)
 */
export function createNetworkPace(
  perS: number,
  maxWaitMs: number,
  now: () => number = () => performance.now(),
): NetworkPace {
  const gapMs = 1_000 / perS
  /** When the next turn of a network would be, were there no burst. */
  const turns = new Map<string, number>()
  return (address) => {
    const network = nameNetwork(address)
    const at = now()
    // A second of silence saves up the turns of one second.
    const turn = Math.max(turns.get(network) ?? 0, at - 1_000) + gapMs
    if (turn - at > maxWaitMs) return undefined
    // Inserted again it becomes the newest: a Map keeps insertion order.
    turns.delete(network)
    turns.set(network, turn)
    const [oldest] = turns.size > MAX_NETWORKS ? turns.keys() : []
    if (oldest !== undefined) turns.delete(oldest)
    return Math.max(0, turn - at)
  }
}

/** Of one network: far more than all orchestrators and scrapers together need. */
const PER_S = 200
/** Also how long a request is held that is refused, or a client without a pause would gain by refusals (ms). */
const MAX_WAIT_MS = 1_000

/**
 * Spaces out requests that need no key, by the network of the client. What exceeds the pace waits up to a second, and
 * is refused beyond that: `rate_limited`. One of it stands before all of them: they share the pace.
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

/** Long enough that a client which repeats at once costs little, short enough for one that waits for its answer (ms). */
const HOLD_MS = 200

/** What they may hold in memory. Beyond it refusals are answered at once. */
const MAX_HELD = 2_000

/**
 * Holds each 429 back for about 200 ms: clients that repeat a refused request at once would otherwise keep this process
 * busy with refusals.
 */
export function holdRefusals() {
  let held = 0
  return createMiddleware<HttpEnv>(async (c, next) => {
    await next()
    if (c.res.status !== 429 || held >= MAX_HELD) return
    held += 1
    // Spread out, so that refusals which began together do not end together.
    await pause(HOLD_MS * (0.5 + Math.random()))
    held -= 1
  })
}
