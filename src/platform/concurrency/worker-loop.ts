import type { Log } from '../telemetry/log.ts'
import { noteOutage } from '../telemetry/outage-log.ts'

/** A round that has begun: how many work items it found, and when all of them are finished. */
export type WorkerRound = { count: number; finished: Promise<void> }

export type WorkerLoopOptions = {
  name: string
  log: Log
  stopping: AbortSignal
  /** Begins a round. Calls `onMore` when the next round may find work. */
  begin: (onMore: () => void) => Promise<WorkerRound>
  /** Returns how long to sleep after a round that found nothing (ms). */
  idleMs: () => Promise<number>
  /** Called with the number of work items of every round that finished without an error. */
  onRound?: (count: number) => void
}

export type WorkerLoop = ReturnType<typeof startWorkerLoop>

const ERROR_PAUSE_MS = 500

/** Runs rounds until `stopping` aborts, and sleeps after one that found nothing. Failed rounds are logged. */
export function startWorkerLoop(options: WorkerLoopOptions) {
  const { name, log, begin, idleMs, stopping, onRound } = options
  const running = new Set<Promise<void>>()
  let isWoken = false
  let endSleep = () => {}
  /** Ends the current sleep, or else the next one, because there may be work. */
  function wake(): void {
    isWoken = true
    endSleep()
  }

  async function sleep(ms: number): Promise<void> {
    if (!isWoken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        endSleep = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    isWoken = false
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
        // It pauses even if it was woken meanwhile, unless it is stopping.
        if (!stopping.aborted) isWoken = false
        await sleep(ERROR_PAUSE_MS)
      }
    }
    await Promise.allSettled(running)
  }

  stopping.addEventListener('abort', wake)
  /** Resolves when the loop has stopped and every round it began has finished. */
  const stopped = run()
  return { wake, stopped }
}

export type Pass = Pick<WorkerLoopOptions, 'name' | 'begin' | 'idleMs'> & {
  /** A NOTIFY on this channel ends the sleep, and so does a new connection to the database. */
  channel?: string
  /** Returns whether a finished round with this many work items was healthy. By default, every one is. */
  isHealthy?: (count: number) => boolean
}

type PassOptions = Pick<WorkerLoopOptions, 'log' | 'stopping'> & {
  listen: (channel: string, onNotify: () => void, onConnected: () => void) => Promise<unknown>
  /** Called when a loop starts and after each of its healthy rounds. */
  onRound: (name: string) => void
}

/**
 * Starts a loop for each pass, so that a pass that fails or hangs does not delay the others. They start once the
 * process listens on all channels, so a failed start leaves no loop running.
 * @throws database errors
 */
export async function startPasses(
  { listen, log, stopping, onRound }: PassOptions,
  passes: readonly Pass[],
): Promise<WorkerLoop[]> {
  const wakes = new Map<Pass, () => void>()
  for (const pass of passes) {
    const wake = () => wakes.get(pass)?.()
    if (pass.channel !== undefined) await listen(pass.channel, wake, wake)
  }
  return passes.map((pass) => {
    const { name, begin, idleMs, isHealthy = () => true } = pass
    onRound(name)
    const loop = startWorkerLoop({
      ...{ name, begin, idleMs, log, stopping },
      onRound: (count) => void (isHealthy(count) && onRound(name)),
    })
    wakes.set(pass, loop.wake)
    return loop
  })
}
