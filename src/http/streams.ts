/** What a stream of this process may cost. */
export type StreamLimits = {
  /** Streams open at once; each is a connection that is never given back by itself. */
  streams: number
  /** A comment so often keeps proxies from closing a quiet one, and its key is looked up again (ms). */
  heartbeatMs: number
  /** Who takes nothing for so long is cut off (ms). */
  stallMs: number
}

export const STREAM_LIMITS: StreamLimits = {
  streams: 1_000,
  heartbeatMs: 15_000,
  stallMs: 30_000,
}

export type Streams = {
  limits: StreamLimits
  /** Takes a place; returns what gives it back, or undefined when there is none. */
  enter(): (() => void) | undefined
  /** How many are open. */
  count(): number
}

export function createStreams(limits: StreamLimits): Streams {
  let open = 0
  return {
    limits,
    enter() {
      if (open >= limits.streams) return undefined
      open += 1
      return () => {
        open -= 1
      }
    },
    count: () => open,
  }
}
