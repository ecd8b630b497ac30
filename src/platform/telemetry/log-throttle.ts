/** The default interval (ms). */
const LOG_EVERY_MS = 1_000

/** Returns the number of lines suppressed since the last one, or undefined while this one is suppressed too. */
export type LogThrottle = () => { leftOut: number } | undefined

/** Limits a kind of log line to one per interval (ms). */
export function createLogThrottle(everyMs = LOG_EVERY_MS): LogThrottle {
  let next = 0
  let leftOut = 0
  return () => {
    const now = performance.now()
    if (now < next) {
      leftOut += 1
      return undefined
    }
    const suppressed = { leftOut }
    next = now + everyMs
    leftOut = 0
    return suppressed
  }
}
