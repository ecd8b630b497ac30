import { createRateLimiter, type Rate } from '../platform/concurrency/rate-limiter.ts'

/** CPU time of refused notifications of one network (ms): a tenth of the time, and so much at once. */
const CPU: Rate = { perMinute: 6_000, burst: 200 }

/** Malformed or wrongly signed ones: enough for a mistyped secret and stray requests, useless for guessing a hash. */
const BAD: Rate = { perMinute: 30, burst: 30 }

/** More than a notification of 64 KiB takes: a pause of the whole process is not its sender's fault (ms). */
const MAX_CHARGE_MS = 5

/** Beside its parsing, most of it before a clock of ours could start: for itself, and for each byte. */
const REQUEST_MS = 0.1
const MS_PER_BYTE = 0.75 / (64 * 1024)

export type Refused = {
  /** It was malformed or wrongly signed, so it cannot be the gateway's. */
  isBad: boolean
  bytes: number
  /** How long it was parsed and checked (ms). */
  tookMs: number
}

/** A well-signed notification is never charged, nor refused for what other networks send. */
export function createGuard(now: () => number = () => performance.now()) {
  const spent = createRateLimiter({ now })
  const bad = createRateLimiter({ now })
  return {
    /** Returns 0, or the time until a request of this network may be read (ms). */
    measureWait: (network: string): number => spent.peek(network, CPU).waitMs,
    /** Returns 0, or the time until the network may send one more bad one (ms). */
    charge(network: string, { isBad, bytes, tookMs }: Refused): number {
      const ms = Math.min(MAX_CHARGE_MS, tookMs) + REQUEST_MS + bytes * MS_PER_BYTE
      spent.charge(network, CPU, ms)
      return isBad ? bad.take(network, BAD).waitMs : 0
    },
  }
}
