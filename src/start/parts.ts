import type { Log } from '../platform/telemetry/log.ts'

/** A part of this process that has to be stopped; the last one started is stopped first. */
export type Part = { stop(): Promise<void> }

/** After this time the process exits even if it has not stopped cleanly (ms). */
const STOP_TIMEOUT_MS = 9_500

/** Returns the handler of SIGTERM and SIGINT: it stops the parts once, and ends the process. */
export function createStopHandler(parts: Part[], log: Log): () => void {
  let isStopping = false
  return () => {
    if (isStopping) return
    isStopping = true
    log.info('stopping: finishing work in flight, accepting no new work')
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref()
    stopParts(parts).then(
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
