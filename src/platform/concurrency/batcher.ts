type Run<T, R> = (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>

export type Batcher<T, R> = ReturnType<typeof createBatcher<T, R>>

type BatchTimeouts<T> = {
  /** Until its run starts (ms). After that, the item is removed from the queue and never runs. */
  queueTimeoutMs: number
  /** From the start of its run (ms). After that, the run continues, but the caller gets no result. */
  runTimeoutMs: number
  onTimeout: (item: T, started: boolean) => Error
}

type BatchItem<T, R> = {
  item: T
  since: number
  run: Run<T, R>
  resolve: (value: R) => void
  reject: (error: unknown) => void
  timer?: NodeJS.Timeout
}

/** The maximum number of slow runs that overlap. */
const MAX_CONCURRENT_RUNS = 4

/**
 * Creates a batcher that runs one batch at a time. Items added during a run share the next one.
 * @param slowRunMs after which a run no longer blocks the next one
 * @param timeouts without them, items wait as long as it takes
 */
export function createBatcher<T, R>(
  maxSize: number,
  slowRunMs: number,
  timeouts?: BatchTimeouts<T>,
) {
  const queue: BatchItem<T, R>[] = []
  const runs = new Set<Promise<void>>()
  let blocked = false
  let startScheduled = false

  function limitWait(one: BatchItem<T, R>, started: boolean): void {
    if (!timeouts) return
    const { queueTimeoutMs, runTimeoutMs, onTimeout } = timeouts
    clearTimeout(one.timer)
    const giveUp = () => {
      if (!started) queue.splice(queue.indexOf(one), 1)
      one.reject(onTimeout(one.item, started))
    }
    one.timer = setTimeout(giveUp, started ? runTimeoutMs : queueTimeoutMs)
  }

  function start(): void {
    if (blocked || queue.length === 0 || runs.size >= MAX_CONCURRENT_RUNS) return
    blocked = true
    const batch = queue.splice(0, maxSize)
    for (const one of batch) limitWait(one, true)
    let blocks = true
    const startNext = () => {
      if (blocks) blocked = false
      blocks = false
      start()
    }
    const timer = setTimeout(startNext, slowRunMs)
    const run = runBatch(batch).then(() => {
      clearTimeout(timer)
      runs.delete(run)
      startNext()
    })
    runs.add(run)
  }

  /** Starts after this turn of the event loop. Otherwise, the first of many items would run alone. */
  function scheduleStart(): void {
    if (startScheduled || blocked) return
    startScheduled = true
    setImmediate(() => {
      startScheduled = false
      start()
    })
  }

  return {
    /**
     * Resolves with the item's result.
     * @param run gets at most `maxSize` items, and returns a result for each, in order. A batch uses the function of
     *   its first item, so all callers must pass equivalent ones
     */
    add: (item: T, run: Run<T, R>) =>
      new Promise<R>((resolve, reject) => {
        const one = { item, since: performance.now(), run, resolve, reject }
        queue.push(one)
        limitWait(one, false)
        scheduleStart()
      }),
    countQueued: () => queue.length,
    /** Returns how long the oldest queued item has waited (ms), or 0. */
    measureOldestWait: () => (queue[0] ? performance.now() - queue[0].since : 0),
    /** Resolves when every item added so far has its result. */
    async drain(): Promise<void> {
      start()
      while (runs.size > 0) await Promise.all(runs)
    },
  }
}

async function runBatch<T, R>(batch: readonly BatchItem<T, R>[]): Promise<void> {
  try {
    const results = await batch[0]?.run(batch.map(({ item }) => item))
    for (const [index, { resolve, reject }] of batch.entries()) {
      const result = results?.[index]
      if (result?.status === 'fulfilled') resolve(result.value)
      else reject(result?.reason ?? new Error('the run returned no result for this item'))
    }
  } catch (error) {
    for (const { reject } of batch) reject(error)
  } finally {
    for (const { timer } of batch) clearTimeout(timer)
  }
}
