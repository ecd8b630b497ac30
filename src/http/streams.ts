/** What a stream of this process may cost. */
export type StreamLimits = {
  /** Streams open at once; each is a connection that is never given back by itself. */
  streams: number
  /** Of those, what one key may have: a program that forgets to close its own leaves room for others. */
  ofOneKey: number
  /** A comment so often keeps proxies from closing a quiet one, and its key is looked up again (ms). */
  heartbeatMs: number
  /** Who takes nothing for so long is cut off (ms). */
  stallMs: number
}

export const STREAM_LIMITS: StreamLimits = {
  streams: 1_000,
  ofOneKey: 250,
  heartbeatMs: 15_000,
  stallMs: 30_000,
}

export type Streams = {
  limits: StreamLimits
  /** Takes a place for a key; returns what gives it back, or who has as many as they may. */
  enter(key: string): (() => void) | 'process' | 'key'
  /** How many are open. */
  count(): number
}

export function createStreams(limits: StreamLimits): Streams {
  const open = new Map<string, number>()
  let total = 0
  return {
    limits,
    enter(key) {
      const ofKey = open.get(key) ?? 0
      if (ofKey >= limits.ofOneKey) return 'key'
      if (total >= limits.streams) return 'process'
      open.set(key, ofKey + 1)
      total += 1
      return () => {
        const left = (open.get(key) ?? 0) - 1
        if (left > 0) open.set(key, left)
        else open.delete(key)
        total -= 1
      }
    },
    count: () => total,
  }
}
