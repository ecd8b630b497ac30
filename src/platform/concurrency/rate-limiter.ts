export type Rate = { perMinute: number; burst: number }

type Allowance = {
  ok: boolean
  /** How long until the cost is available (ms); 0 means now. */
  waitMs: number
  left: number
  /** How long until the whole burst is available, if nothing is taken meanwhile (ms). */
  wholeInMs: number
}

export type RateLimiter = ReturnType<typeof createRateLimiter>

type RateLimiterOptions = {
  /** Each takes some 150 bytes. Beyond this number, the key that was silent for longest is forgotten. */
  maxKeys?: number
  /** Milliseconds on a monotonic clock. */
  now?: () => number
}

const MAX_KEYS = 10_000

/** More than the rounding errors of a long burst can add up to (ms). */
const ROUNDING_MS = 0.01

/** Limits the rate of any number of keys by the generic cell rate algorithm. */
export function createRateLimiter({
  maxKeys = MAX_KEYS,
  now = () => performance.now(),
}: RateLimiterOptions = {}) {
  const wholeAt = new Map<string, number>()

  function measure(key: string, { perMinute, burst }: Rate, cost: number) {
    const at = now()
    const gapMs = 60_000 / perMinute
    const usedUntil = Math.max(at, wholeAt.get(key) ?? at)
    const next = usedUntil + cost * gapMs
    const excessMs = next - at - burst * gapMs
    const ok = excessMs <= ROUNDING_MS
    const wholeInMs = (ok ? next : usedUntil) - at
    const left = Math.max(0, Math.floor((burst * gapMs - wholeInMs + ROUNDING_MS) / gapMs))
    return { usedUntil, next, allowance: { ok, waitMs: ok ? 0 : excessMs, left, wholeInMs } }
  }
  const remember = (key: string, until: number) => setNewest(wholeAt, key, until, maxKeys)
  return {
    /** Takes `cost` from the key's allowance, or nothing if it has less. */
    take(key: string, rate: Rate, cost = 1): Allowance {
      const { usedUntil, next, allowance } = measure(key, rate, cost)
      remember(key, allowance.ok ? next : usedUntil)
      return allowance
    },
    /** Returns what `take` would return, without taking anything. */
    peek: (key: string, rate: Rate, cost = 1): Allowance => measure(key, rate, cost).allowance,
    /**
     * Takes `cost` even if it is not available, for what was already used. The key then waits until it is paid back.
     */
    charge(key: string, rate: Rate, cost = 1): void {
      remember(key, measure(key, rate, cost).next)
    },
  }
}

/** Makes a key the newest, because a Map keeps insertion order. Beyond `maxKeys`, the oldest key is removed. */
function setNewest<T>(map: Map<string, T>, key: string, value: T, maxKeys: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.size > maxKeys ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}

/** Converts a wait for `Retry-After` and the like: whole seconds, at least one. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}

/**
 * Lets one of each kind through per interval (ms), so that a flood of causes does not flood the log. Clients may
 * cause new kinds, so of too many the oldest is forgotten.
 * @returns a function that returns how many of a kind were left out since the last one; undefined for one to leave
 *   out
 */
export function createThrottle(
  everyMs: number,
  { maxKeys = MAX_KEYS, now = () => performance.now() }: RateLimiterOptions = {},
) {
  const kinds = new Map<string, { until: number; leftOut: number }>()
  return (kind: string): { leftOut: number } | undefined => {
    const { until, leftOut } = kinds.get(kind) ?? { until: 0, leftOut: 0 }
    const isThrough = now() >= until
    const next = isThrough
      ? { until: now() + everyMs, leftOut: 0 }
      : { until, leftOut: leftOut + 1 }
    setNewest(kinds, kind, next, maxKeys)
    return isThrough ? { leftOut } : undefined
  }
}
