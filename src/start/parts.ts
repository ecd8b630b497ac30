import type { Log } from '../platform/telemetry/log.ts'

/** A part of this process that has to be stopped; the last one started is stopped first. */
export type Part = {
  /** Reports the process as not ready from now on, and changes nothing else. */
  drain?(): void
  stop(): Promise<void>
}

/** After this time, counted from the end of `DRAIN_MS`, the process exits even if it has not stopped cleanly (ms). */
const STOP_TIMEOUT_MS = 9_500

/**
 * Returns the handler of SIGTERM and SIGINT: it drains and stops the parts once, and ends the process with 0. Further
 * signals change nothing.
 * @param drainMs how long everything is still served while the process reports that it is not ready; skipped by a
 *   process that never was
 */
export function createStopHandler(parts: Part[], drainMs: number, log: Log): () => void {
  let isStopping = false
  async function drainAndStop(): Promise<void> {
    const drained = parts.filter((part) => part.drain)
    for (const part of drained) part.drain?.()
    if (drainMs > 0 && drained.length > 0) {
      log.info({ drainMs }, 'draining: not ready any more, everything is still served')
      await new Promise((resolve) => setTimeout(resolve, drainMs))
    }
    log.info('stopping: finishing work in flight, accepting no new work')
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref()
    await stopParts(parts)
  }
  return () => {
    if (isStopping) return
    isStopping = true
    drainAndStop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed; work in flight is resumed at the next start')
        process.exit(0)
      },
    )
  }
}

/** Stops the parts, the last one started first, and empties the list. */
export async function stopParts(parts: Part[]): Promise<void> {
  for (const part of parts.splice(0).reverse()) await part.stop()
}
