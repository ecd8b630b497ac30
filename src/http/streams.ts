/** Limits on the event streams of this process. */
export type StreamLimits = {
  /** Streams open at once; each holds a connection until the client closes it. */
  streams: number
  /** Of those, the most for one key: a client that leaks its streams must not use them all. */
  ofOneKey: number
  /**
   * Interval of the comments that keep proxies from closing a quiet stream; the key is checked again at
   * each (ms).
   */
  heartbeatMs: number
  /** A client that reads nothing for so long is disconnected (ms). */
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
  /** Counts a stream of a key. Returns a function that ends it, or whose limit is reached. */
  enter(key: string): (() => void) | 'process' | 'key'
  /** Returns how many streams are open. */
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
