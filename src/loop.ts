import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/** A round that has begun: how much it found to do, and when all of it is done. */
export type LoopRound = { count: number; finished: Promise<void> }

export type LoopOptions = {
  name: string
  log: Log
  /** Begins one round; `onMore` is to be called when the next one may find work. */
  begin: (onMore: () => void) => Promise<LoopRound>
  /** How long there is nothing to do (ms); asked after a round that found nothing. */
  rest: () => Promise<number>
  stopping: AbortSignal
  /** Told of every round whose work is finished, with how much it found. */
  onRound?: (count: number) => void
}

export type Loop = {
  /** There may be something to do now. */
  wake(): void
  /** Resolves when the loop has stopped and every round it began is finished. */
  stopped: Promise<void>
}

/** After trouble with the database (ms). */
const PAUSE_MS = 500

/** Runs rounds until the process stops, one after another while they find something. None ends the loop. */
export function startLoop({ name, log, begin, rest, stopping, onRound }: LoopOptions): Loop {
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

  function tellTrouble(error: unknown): void {
    log.error({ err: error, loop: name }, `${name} could not run a round; it goes on`)
  }

  async function run(): Promise<void> {
    while (!stopping.aborted) {
      try {
        const { count, finished } = await begin(wake)
        const ended = finished.then(() => onRound?.(count))
        const tracked = ended.catch(tellTrouble).finally(() => running.delete(tracked))
        running.add(tracked)
        if (count === 0) await sleep(await rest())
      } catch (error) {
        tellTrouble(error)
        woken = false
        await sleep(PAUSE_MS)
      }
    }
    await Promise.allSettled(running)
  }

  stopping.addEventListener('abort', wake)
  return { wake, stopped: run() }
}

/** Of the context. */
type Watched = { metrics: Pick<Metrics, 'loopRound'>; log: Log; stopping: AbortSignal }

/**
 * Starts a loop until the process stops, and shows when it last ended a round without trouble.
 * @param proves whether a round that found so much was one: by default every round that ends is
 */
export function watchLoop(
  { metrics, log, stopping }: Watched,
  {
    proves = () => true,
    ...loop
  }: Pick<LoopOptions, 'name' | 'begin' | 'rest'> & { proves?: (count: number) => boolean },
): Loop {
  const touch = () => metrics.loopRound.set({ loop: loop.name }, Date.now() / 1000)
  touch()
  const onRound = (count: number) => void (proves(count) && touch())
  return startLoop({ ...loop, log, stopping, onRound })
}
