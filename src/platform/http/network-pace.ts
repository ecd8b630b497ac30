import { nameNetwork } from './client-address.ts'

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
