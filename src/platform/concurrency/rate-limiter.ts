/** So many a minute, of which `burst` may come at once. */
export type Rate = { perMinute: number; burst: number }

type Allowance = {
  ok: boolean
  /** How long until as much may be taken (ms); 0 means now. */
  waitMs: number
  /** What may still be taken at once. */
  left: number
  /** How long until the whole burst may be taken, if nothing is taken meanwhile (ms). */
  wholeInMs: number
}

export type RateLimiter = ReturnType<typeof createRateLimiter>

type RateLimiterOptions = {
  /** Some 150 bytes each. Beyond it the key that was silent for longest is forgotten. */
  maxKeys?: number
  /** Milliseconds on a monotonic clock. */
  now?: () => number
}

const MAX_KEYS = 10_000

/** The rounding errors of the thousands of sums of a long burst together stay below it (ms). */
const ROUNDING_MS = 0.01

/**
 * Limits the rate of any number of keys, by the generic cell rate algorithm: it stores one number for each of them, the
 * time at which nothing of the burst would be used any more.
 */
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
    /** Takes `cost` of what the key may use, or nothing if that much is not there. */
    take(key: string, rate: Rate, cost = 1): Allowance {
      const { usedUntil, next, allowance } = measure(key, rate, cost)
      remember(key, allowance.ok ? next : usedUntil)
      return allowance
    },
    /** What `take` would return; takes nothing. */
    peek: (key: string, rate: Rate, cost = 1): Allowance => measure(key, rate, cost).allowance,
    /** Takes `cost` whether it is there or not: what was used already. The key waits until the debt is paid. */
    charge(key: string, rate: Rate, cost = 1): void {
      remember(key, measure(key, rate, cost).next)
    },
  }
}

/** Inserted again a key becomes the newest, because a Map keeps insertion order; beyond `maxKeys` the oldest goes. */
function setNewest<T>(map: Map<string, T>, key: string, value: T, maxKeys: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.size > maxKeys ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}

/** A wait as `Retry-After` and the like name it: whole seconds, at least one. */
export function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}

/**
 * Lets one of a kind through per interval (ms), so that a flood of causes is no flood of log lines. A client may name
 * the kind: of too many, the oldest is forgotten.
 * @returns a function that returns how many of a kind were left out since the last one; undefined while one more is
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
