export type ReadingBudget = {
  /** Returns 0 if a request of this network may be read, else the time until one may be (ms). */
  measureWait(network: string): number
  /**
   * Charges the CPU time of a notification that was refused (ms).
   * @param isThrottled the network has sent too many bad signatures: unless it is known, time costs it four times as much
   */
  charge(network: string, ms: number, isThrottled: boolean): void
  /** Records a well-signed notification: for a day the network has a share of its own. */
  confirm(network: string): void
  /** Returns the number of networks remembered. */
  size(): number
}

/** CPU time (ms): what is left of it, when it was last counted, what a second adds, and what can be saved up. */
type Share = { left: number; countedAt: number; perS: number; most: number }

/** What refused notifications may take of each second of CPU: those of one network, and of all together. */
const OF_NETWORK = { perS: 100, most: 200 }
const OF_ALL = { perS: 400, most: 400 }
/** So much of a well-known network's own share does not depend on what the others take. */
const RESERVED = OF_NETWORK.most / 2

/** A quiet account has a notification a day. */
const KNOWN_FOR_MS = 24 * 3_600_000
/** About 2 MB for each of the two lists. Beyond it the network that was silent for longest is evicted. */
const MAX_NETWORKS = 10_000
/** More than a notification of 64 KiB takes: a pause of the whole process is not its sender's fault (ms). */
const MAX_CHARGE_MS = 5
const THROTTLED_WEIGHT = 4

/**
 * Bounds the CPU time that refused notifications take: what a sender has used up, its next requests are refused
 * unread. Well-signed notifications are never charged, and a network that recently sent one and few others is always
 * read, whatever other networks send.
 */
export function createReadingBudget(now: () => number = () => performance.now()): ReadingBudget {
  const shares = new Map<string, Share>()
  const knownUntil = new Map<string, number>()
  const all: Share = { ...OF_ALL, left: OF_ALL.most, countedAt: now() }

  function countLeft(share: Share): number {
    const at = now()
    share.left = Math.min(share.most, share.left + ((at - share.countedAt) * share.perS) / 1_000)
    share.countedAt = at
    return share.left
  }
  const isKnown = (network: string) => (knownUntil.get(network) ?? 0) > now()

  return {
    measureWait(network) {
      const share = shares.get(network)
      const left = share ? countLeft(share) : OF_NETWORK.most
      if (left <= 0) return measureRefill(left, OF_NETWORK.perS)
      const leftOfAll = countLeft(all)
      if (leftOfAll > 0 || (left > RESERVED && isKnown(network))) return 0
      return measureRefill(leftOfAll, OF_ALL.perS)
    },
    charge(network, ms, isThrottled) {
      const known = isKnown(network)
      const charged = Math.min(ms, MAX_CHARGE_MS) * (isThrottled && !known ? THROTTLED_WEIGHT : 1)
      const share = shares.get(network) ?? {
        ...OF_NETWORK,
        left: OF_NETWORK.most,
        countedAt: now(),
      }
      const isOwn = countLeft(share) > RESERVED && known
      share.left -= charged
      remember(shares, network, share)
      if (isOwn) return
      countLeft(all)
      all.left -= charged
    },
    confirm(network) {
      const until = now() + KNOWN_FOR_MS
      // Written again only after a minute: most notifications come from a few networks.
      if ((knownUntil.get(network) ?? 0) < until - 60_000) remember(knownUntil, network, until)
    },
    size: () => shares.size + knownUntil.size,
  }
}

function measureRefill(left: number, perS: number): number {
  return ((1 - left) * 1_000) / perS
}

/** Inserted again it becomes the newest: a Map keeps insertion order. */
function remember<T>(networks: Map<string, T>, network: string, value: T): void {
  networks.delete(network)
  networks.set(network, value)
  const [oldest] = networks.size > MAX_NETWORKS ? networks.keys() : []
  if (oldest !== undefined) networks.delete(oldest)
}
