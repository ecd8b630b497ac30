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

/** One run at a time, each with everything that gathered during the one before. */
export function createGroup<T, R>(maxSize: number): Group<T, R> {
  let waiting: Waiter<T, R>[] = []
  let running: Promise<void> | undefined

  async function work(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxSize)
      waiting = waiting.slice(maxSize)
      await runTogether(batch)
    }
    running = undefined
  }

  return {
    add: (item, run) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, run, resolve, reject })
        running ??= work()
      }),
    countWaiting: () => waiting.length,
    drain: () => running ?? Promise.resolve(),
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
