import type { Context } from '../context.ts'
import { createThrottle } from '../platform/concurrency/rate-limiter.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import type { IpnAnswer } from './answer.ts'

type Sender = { address: string; requestId: string }

export type RefusalLog = {
  /** Logs a notification that could not be stored, with the error that prevented it. */
  logFailure(error: unknown, answer: IpnAnswer, sender: Sender): void
  /** Logs a refused notification. Ignores failures: `logFailure` has logged those. */
  logRefusal(answer: IpnAnswer, sender: Sender): void
}

/** Of one verdict (ms). */
const LOG_EVERY_MS = 1_000

/** Logs refused notifications: per verdict one line a second at most, with the number suppressed before it. */
export function createRefusalLog({ log }: Pick<Context, 'log'>): RefusalLog {
  const throttle = createThrottle(LOG_EVERY_MS)
  return {
    logFailure(err, { verdict }, sender) {
      if (noteOutage(log, err, 'notifications')) return
      const suppressed = throttle(verdict)
      if (!suppressed) return
      log.error(
        { err, ...sender, ...suppressed },
        'a notification could not be stored; the gateway has to send it again',
      )
    },
    logRefusal({ status, verdict, why }, sender) {
      const isRefusal = status < 500 || verdict === 'throttled'
      const suppressed = isRefusal ? throttle(verdict) : undefined
      if (suppressed) log.warn({ verdict, why, ...sender, ...suppressed }, 'notification refused')
    },
  }
}
