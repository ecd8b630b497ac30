/** Runs work in batches: items added while a run is in progress share the next run. */
export type Batcher<T, R> = {
  /**
   * Resolves with the item's result. An idle batcher starts its run at the end of this turn of the event loop.
   * @param run receives the queued items, at most `maxSize`, and returns one result per item, in order. A batch
   *   runs the function of its first item, so all callers must pass equivalent ones.
   */
  add(item: T, run: (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>): Promise<R>
  /** Returns the number of items whose run has not started. */
  countQueued(): number
  /** Returns how long the oldest queued item has waited (ms); 0 when none is queued. */
  measureOldestWait(): number
  /** Resolves when every item added so far has its result. */
  drain(): Promise<void>
}

/** How long an item may wait for its result. */
export type BatchTimeouts<T> = {
  /** Until its run starts (ms): the item is then removed from the queue and never runs. */
  queueTimeoutMs: number
  /** From then on (ms): the run continues, but the caller gets no result. */
  runTimeoutMs: number
  /** Called with an item that timed out; returns the error that its caller gets. */
  onTimeout: (item: T, started: boolean) => Error
}

type BatchItem<T, R> = {
  item: T
  since: number
  run: (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>
  resolve: (value: R) => void
  reject: (error: unknown) => void
}

type StartedBatch<T, R> = { items: BatchItem<T, R>[]; since: number }

/** Slow runs may overlap up to this number. */
const MAX_CONCURRENT_RUNS = 4
/** One timer checks all items: a time-out takes effect at most this much late (ms). */
const CHECK_MS = 50

/**
 * Creates a batcher that runs one batch at a time.
 * @param slowRunMs a run that takes longer no longer blocks the next one; by default it always does
 * @param timeouts without them items wait as long as it takes
 */
export function createBatcher<T, R>(
  maxSize: number,
  slowRunMs = Number.POSITIVE_INFINITY,
  timeouts?: BatchTimeouts<T>,
): Batcher<T, R> {
  const queue: BatchItem<T, R>[] = []
  /** The batches in progress whose items may still time out. */
  const started = new Set<StartedBatch<T, R>>()
  const runs = new Set<Promise<void>>()
  const scheduleCheck = timeouts ? watchTimeouts(queue, started, timeouts) : () => {}
  let blocked = false
  let startScheduled = false

  function start(): void {
    if (blocked || queue.length === 0 || runs.size >= MAX_CONCURRENT_RUNS) return
    blocked = true
    const batch = { items: queue.splice(0, maxSize), since: performance.now() }
    started.add(batch)
    let blocks = true
    const startNext = () => {
      if (blocks) blocked = false
      blocks = false
      start()
    }
    const timer = Number.isFinite(slowRunMs) ? setTimeout(startNext, slowRunMs) : undefined
    const run = runBatch(batch.items).then(() => {
      clearTimeout(timer)
      runs.delete(run)
      started.delete(batch)
      startNext()
    })
    runs.add(run)
  }

  /** Starts after this turn of the event loop: otherwise the first of many items would run alone. */
  function scheduleStart(): void {
    if (startScheduled || blocked) return
    startScheduled = true
    setImmediate(() => {
      startScheduled = false
      start()
    })
  }

  return {
    add: (item, run) =>
      new Promise((resolve, reject) => {
        queue.push({ item, since: performance.now(), run, resolve, reject })
        scheduleStart()
        scheduleCheck()
      }),
    countQueued: () => queue.length,
    measureOldestWait: () => (queue[0] ? performance.now() - queue[0].since : 0),
    async drain() {
      start()
      while (runs.size > 0) await Promise.all(runs)
    },
  }
}

/**
 * Rejects items whose time is over.
 * @returns to be called when an item was queued; a timer runs only while there are items
 */
function watchTimeouts<T, R>(
  queue: BatchItem<T, R>[],
  started: Set<StartedBatch<T, R>>,
  { queueTimeoutMs, runTimeoutMs, onTimeout }: BatchTimeouts<T>,
): () => void {
  let timer: NodeJS.Timeout | undefined

  function rejectExpired(): void {
    timer = undefined
    const now = performance.now()
    // The queue is in order of arrival.
    const firstInTime = queue.findIndex(({ since }) => now - since < queueTimeoutMs)
    const expired = queue.splice(0, firstInTime === -1 ? queue.length : firstInTime)
    for (const { item, reject } of expired) reject(onTimeout(item, false))
    for (const batch of started) {
      if (now - batch.since < runTimeoutMs) continue
      started.delete(batch)
      for (const { item, reject } of batch.items) reject(onTimeout(item, true))
    }
    schedule()
  }

  function schedule(): void {
    if (timer || (queue.length === 0 && started.size === 0)) return
    timer = setTimeout(rejectExpired, CHECK_MS)
  }
  return schedule
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
  }
}
