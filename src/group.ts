/** Work that is done together: what comes while a run is on its way shares the next one. */
export type Group<T, R> = {
  /**
   * Resolves with what `run` made of the item. An idle group runs at once.
   * @param run called with everything that waits, at most `maxSize` items; one result for each, in
   * order. It is the first item's that runs, so all callers have to mean the same by it.
   */
  add(item: T, run: (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>): Promise<R>
  /** Items that no run has taken yet. */
  countWaiting(): number
  /** Resolves when everything added so far has its result. */
  drain(): Promise<void>
}

type Waiter<T, R> = {
  item: T
  run: (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>
  resolve: (value: R) => void
  reject: (error: unknown) => void
}

/** So many that are slow may be on their way beside each other. */
const MAX_RUNS = 4

/**
 * One run at a time, each with everything that gathered during the one before.
 * @param patienceMs a run that takes longer holds up the next no more; never by default
 */
export function createGroup<T, R>(
  maxSize: number,
  patienceMs = Number.POSITIVE_INFINITY,
): Group<T, R> {
  let waiting: Waiter<T, R>[] = []
  let busy = false
  const runs = new Set<Promise<void>>()

  function start(): void {
    if (busy || waiting.length === 0 || runs.size >= MAX_RUNS) return
    busy = true
    const batch = waiting.slice(0, maxSize)
    waiting = waiting.slice(maxSize)
    let held = true
    const goOn = () => {
      if (held) busy = false
      held = false
      start()
    }
    const timer = Number.isFinite(patienceMs) ? setTimeout(goOn, patienceMs) : undefined
    const run = runTogether(batch).then(() => {
      clearTimeout(timer)
      runs.delete(run)
      goOn()
    })
    runs.add(run)
  }

  return {
    add: (item, run) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, run, resolve, reject })
        start()
      }),
    countWaiting: () => waiting.length,
    async drain() {
      while (runs.size > 0) await Promise.all(runs)
    },
  }
}

async function runTogether<T, R>(batch: readonly Waiter<T, R>[]): Promise<void> {
  try {
    const results = await batch[0]?.run(batch.map(({ item }) => item))
    for (const [index, { resolve, reject }] of batch.entries()) {
      const result = results?.[index]
      if (result?.status === 'fulfilled') resolve(result.value)
      else reject(result?.reason ?? new Error('a run forgot an item'))
    }
  } catch (error) {
    for (const { reject } of batch) reject(error)
  }
}
