import type { Log } from '../platform/telemetry/log.ts'

/** A part of this process that has to be stopped; the last one started is stopped first. */
export type Part = {
  /** Reports the process as not ready from now on, and changes nothing else. */
  drain?(): void
  stop(): Promise<void>
}

/** The parts of this process that have been started. */
export type Parts = {
  /** Adds a part as soon as it is started. After a stop has begun it is stopped, too. */
  add(part: Part): void
  /** Returns those that are running, in the order of their start. */
  list(): readonly Part[]
  /** Stops them, the last one started first. May be called again. */
  stop(): Promise<void>
}

/** Creates an empty list of parts. */
export function createParts(): Parts {
  const running: Part[] = []
  let stopped: Promise<void> | undefined
  async function stopAll(): Promise<void> {
    for (let part = running.pop(); part; part = running.pop()) await part.stop()
  }
  return {
    add(part) {
      running.push(part)
      if (stopped) stopped = stopped.then(stopAll)
    },
    list: () => running,
    stop() {
      stopped ??= stopAll()
      return stopped
    },
  }
}

/** The stop of this process that a signal requests. */
export type Stop = {
  /** Begins the stop, and ends the process with 0 after it. Further requests change nothing. */
  request(): void
  /** The stop that has begun, if one has; never rejects. */
  begun(): Promise<void> | undefined
}

/** After this time, counted from the end of `DRAIN_MS`, the process exits even if it has not stopped cleanly (ms). */
const STOP_TIMEOUT_MS = 9_500

/**
 * Creates what drains and stops the parts once, and then ends the process with 0.
 * @param drainMs how long everything is still served while the process reports that it is not ready; skipped by a
 *   process that never was
 */
export function createStop(parts: Parts, drainMs: number, log: Log): Stop {
  let begun: Promise<void> | undefined
  async function drainAndStop(): Promise<void> {
    const drained = parts.list().filter((part) => part.drain)
    for (const part of drained) part.drain?.()
    if (drainMs > 0 && drained.length > 0) {
      log.info({ drainMs }, 'draining: not ready any more, everything is still served')
      await new Promise((resolve) => setTimeout(resolve, drainMs))
    }
    log.info('stopping: finishing work in flight, accepting no new work')
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref()
    await parts.stop()
  }
  return {
    request() {
      begun ??= drainAndStop()
        .catch((error: unknown) => {
          const message = 'the stop failed; work in flight is resumed at the next start'
          log.error({ err: error }, message)
        })
        .then(() => process.exit(0))
    },
    begun: () => begun,
  }
}

/**
 * Handles the signals that stop a process from now on: without a handler each of them ends it as if it had crashed. Until
 * a stop is attached nothing runs that has to be stopped, so a signal ends the process with 0.
 * @returns attaches what a signal does
 */
export function catchSignals(): (stop: () => void) => void {
  let stop = (): void => process.exit(0)
  const handle = () => stop()
  // `on`, not `once`: Ctrl-C under npm arrives twice, and the second signal must not abort the stop.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, handle)
  return (attached) => {
    stop = attached
  }
}
