import type { Log } from '../telemetry/log.ts'
import { noteOutage } from '../telemetry/outage-log.ts'

/** A round that has begun: how many work items it found, and when all of them are finished. */
export type WorkerRound = { count: number; finished: Promise<void> }

export type WorkerLoopOptions = {
  name: string
  log: Log
  stopping: AbortSignal
  /** Begins one round and calls `onMore` when the next round may find work. */
  begin: (onMore: () => void) => Promise<WorkerRound>
  /** Returns how long to sleep (ms). Called after a round that found nothing. */
  idleMs: () => Promise<number>
  /** Called with the number of work items of every round that has finished without an error. */
  onRound?: (count: number) => void
}

export type WorkerLoop = ReturnType<typeof startWorkerLoop>

/** The sleep after a failed round (ms). */
const ERROR_PAUSE_MS = 500

/** Runs rounds until `stopping` aborts, and sleeps after one that found nothing. One that fails is logged. */
export function startWorkerLoop(options: WorkerLoopOptions) {
  const { name, log, begin, idleMs, stopping, onRound } = options
  const running = new Set<Promise<void>>()
  let isWoken = false
  let endSleep = () => {}
  /** Ends the current sleep, or else the next one: there may be work now. */
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
        // Whatever woke it meanwhile, it pauses: only a stop does not wait.
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

/** Work that a process repeats until it stops. */
export type Pass = Pick<WorkerLoopOptions, 'name' | 'begin' | 'idleMs'> & {
  /** A NOTIFY on this channel ends the sleep, and so does a new connection to the database. */
  channel?: string
  /** Whether a finished round with this many work items counts as healthy; by default every one does. */
  isHealthy?: (count: number) => boolean
}

type PassOptions = Pick<WorkerLoopOptions, 'log' | 'stopping'> & {
  listen: (channel: string, onNotify: () => void, onConnected: () => void) => Promise<unknown>
  /** Called when a loop starts, and when a healthy round of it has finished. */
  onRound: (name: string) => void
}

/**
 * Starts a loop for each pass, so that one that fails or hangs delays no other. They start together, once the process
 * listens on all channels: a failed start leaves no loop running.
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
