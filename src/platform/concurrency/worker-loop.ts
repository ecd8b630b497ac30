import type { Gauge } from 'prom-client'
import type { Log } from '../telemetry/log.ts'
import { noteOutage } from '../telemetry/outage-log.ts'

/** A round that has begun: how many work items it found, and when all of them are finished. */
export type WorkerRound = { count: number; finished: Promise<void> }

export type WorkerLoopOptions = {
  name: string
  log: Log
  /** Begins one round and calls `onMore` when the next round may find work. */
  begin: (onMore: () => void) => Promise<WorkerRound>
  /** Returns how long to sleep (ms). Called after a round that found nothing. */
  idleMs: () => Promise<number>
  stopping: AbortSignal
  /** Called with the number of work items of every round that has finished without an error. */
  onRound?: (count: number) => void
}

export type WorkerLoop = {
  /** Ends the current sleep: there may be work now. */
  wake(): void
  /** Resolves when the loop has stopped and every round it began has finished. */
  stopped: Promise<void>
}

/** The sleep after a failed round (ms). */
const ERROR_PAUSE_MS = 500

/**
 * Runs rounds one after another until `stopping` aborts, and sleeps after a round that found nothing. A failed
 * round is logged and does not end the loop.
 */
export function startWorkerLoop({
  name,
  log,
  begin,
  idleMs,
  stopping,
  onRound,
}: WorkerLoopOptions): WorkerLoop {
  const running = new Set<Promise<void>>()
  let woken = false
  let wakeSleeper = () => {}

  function wake(): void {
    woken = true
    wakeSleeper()
  }

  async function sleep(ms: number): Promise<void> {
    if (!woken && !stopping.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        wakeSleeper = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    woken = false
  }

  function logFailedRound(error: unknown): void {
    if (noteOutage(log, error, 'rounds')) return
    log.error({ err: error, loop: name }, `a round of the ${name} loop failed; the loop continues`)
  }

  async function run(): Promise<void> {
    while (!stopping.aborted) {
      try {
        const { count, finished } = await begin(wake)
        const ended = finished.then(() => onRound?.(count))
        const tracked = ended.catch(logFailedRound).finally(() => running.delete(tracked))
        running.add(tracked)
        if (count === 0) await sleep(await idleMs())
      } catch (error) {
        logFailedRound(error)
        woken = false
        await sleep(ERROR_PAUSE_MS)
      }
    }
    await Promise.allSettled(running)
  }

  stopping.addEventListener('abort', wake)
  return { wake, stopped: run() }
}

/** The members of the context that a monitored loop uses. */
type LoopContext = { metrics: { loopRound: Gauge<'loop'> }; log: Log; stopping: AbortSignal }

/**
 * Starts a loop that runs until the process stops and records in a gauge when its last healthy round finished.
 * @param isHealthy whether a finished round with this many work items counts as healthy; by default every one does
 */
export function startMonitoredLoop(
  { metrics, log, stopping }: LoopContext,
  {
    isHealthy = () => true,
    ...loop
  }: Pick<WorkerLoopOptions, 'name' | 'begin' | 'idleMs'> & {
    isHealthy?: (count: number) => boolean
  },
): WorkerLoop {
  const recordRound = () => metrics.loopRound.set({ loop: loop.name }, Date.now() / 1000)
  recordRound()
  const onRound = (count: number) => void (isHealthy(count) && recordRound())
  return startWorkerLoop({ ...loop, log, stopping, onRound })
}
