import { nameNetwork } from '../http/client-address.ts'

export type SignatureThrottle = {
  /**
   * Counts a notification with a bad signature.
   * @returns 0 while its sender is within the limit, else the time until its window ends (ms)
   */
  count(address: string): number
  /** Returns the number of senders remembered. */
  size(): number
}

/** Per window: enough for a mistyped secret and a few stray requests, useless for guessing a hash. */
const MAX_BAD = 30
const WINDOW_MS = 60_000
/** About 2 MB. Beyond it the sender that was silent for longest is evicted. */
const MAX_SENDERS = 10_000

/** Counts bad signatures by sender in windows of a minute. Well-signed notifications are never counted. */
export function createSignatureThrottle(
  now: () => number = () => performance.now(),
): SignatureThrottle {
  const senders = new Map<string, { bad: number; until: number }>()
  return {
    count(address) {
      const sender = nameNetwork(address)
      const at = now()
      const known = senders.get(sender)
      const entry = known && known.until > at ? known : { bad: 0, until: at + WINDOW_MS }
      entry.bad += 1
      // Inserted again it becomes the newest: a Map keeps insertion order.
      senders.delete(sender)
      senders.set(sender, entry)
      const [oldest] = senders.size > MAX_SENDERS ? senders.keys() : []
      if (oldest !== undefined) senders.delete(oldest)
      return entry.bad > MAX_BAD ? entry.until - at : 0
    },
    size: () => senders.size,
  }
}
