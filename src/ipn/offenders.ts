import { isIPv6 } from 'node:net'

export type Offenders = {
  /**
   * Counts a notification with a bad signature.
   * @returns 0 while its sender is within the limit, else how long until it is again (ms)
   */
  count(address: string): number
  /** How many senders are remembered. */
  size(): number
}

/** Enough for a secret that was mistyped and for a few strays; a guesser gets nowhere with it. */
const MAX_BAD = 30
const WINDOW_MS = 60_000
/** About 2 MB. Past it the sender is forgotten that was silent for longest. */
const MAX_SENDERS = 10_000

/** Bad signatures by sender in windows of a minute. Nothing here ever looks at a good one. */
export function createOffenders(now: () => number = () => performance.now()): Offenders {
  const senders = new Map<string, { bad: number; until: number }>()
  return {
    count(address) {
      const sender = nameSender(address)
      const at = now()
      const known = senders.get(sender)
      const entry = known && known.until > at ? known : { bad: 0, until: at + WINDOW_MS }
      entry.bad += 1
      // Set anew it is the youngest: a Map keeps the order in which its keys came.
      senders.delete(sender)
      senders.set(sender, entry)
      const [oldest] = senders.size > MAX_SENDERS ? senders.keys() : []
      if (oldest !== undefined) senders.delete(oldest)
      return entry.bad > MAX_BAD ? entry.until - at : 0
    },
    size: () => senders.size,
  }
}

/** An IPv6 sender commands a whole /64 (RFC 6177): its addresses count as one. */
function nameSender(address: string): string {
  const [bare = ''] = address.split('%')
  if (!isIPv6(bare)) return bare
  // The host of a web address is written in one form only (RFC 5952); a dotted tail is gone in it.
  const [head = '', tail] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail ? tail.split(':') : []
  const zeros = Array(tail === undefined ? 0 : 8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right].slice(0, 4).join(':')
}
