import { createRateLimiter, type Rate } from '../platform/concurrency/rate-limiter.ts'

/** CPU time (ms) that one network may use up with refused notifications: a tenth of the time, with this burst. */
const CPU: Rate = { perMinute: 6_000, burst: 200 }

/** Malformed or wrongly signed notifications: enough for a mistyped secret, far too few to guess a hash. */
const BAD: Rate = { perMinute: 30, burst: 30 }

/** More than a notification of 64 KiB takes (ms). The sender is not charged for a pause of the whole process. */
const MAX_CHARGE_MS = 5

/** What a request costs beside its parsing, most of it before our clock starts. */
const REQUEST_MS = 0.1
const MS_PER_BYTE = 0.75 / (64 * 1024)

export type Refused = {
  isBad: boolean
  bytes: number
  tookMs: number
}

/** Limits what refused notifications may cost, by network. One that is stored is never charged. */
export function createRefusalLimits(now: () => number = () => performance.now()) {
  const spent = createRateLimiter({ now })
  const bad = createRateLimiter({ now })
  return {
    measureWait: (network: string): number => spent.peek(network, CPU).waitMs,
    /** Returns how long the network has to wait before it may send another bad notification (ms). */
    charge(network: string, { isBad, bytes, tookMs }: Refused): number {
      const ms = Math.min(MAX_CHARGE_MS, tookMs) + REQUEST_MS + bytes * MS_PER_BYTE
      spent.charge(network, CPU, ms)
      return isBad ? bad.take(network, BAD).waitMs : 0
    },
  }
}
