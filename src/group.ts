/** Work that is done together: what comes while a run is on its way shares the next one. */
export type Group<T, R> = {
  /**
   * Resolves with what `run` made of the item. An idle group runs with this turn of the event loop.
   * @param run called with everything that waits, at most `maxSize` items; one result for each, in
   * order. It is the first item's that runs, so all callers have to mean the same by it.
   */
  add(item: T, run: (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>): Promise<R>
  /** Items that no run has taken yet. */
  countWaiting(): number
  /** How long the oldest of them has been waiting (ms); asked of a group with bounds only. */
  measureWait(): number
  /** Resolves when everything added so far has its result. */
  drain(): Promise<void>
}

/** How long an item may be without its result (ms). */
export type Patience<T> = {
  /** Until a run takes it: it is forgotten then, and nothing will have been done about it. */
  untakenMs: number
  /** From then on: the run goes on, and nobody learns what became of the item. */
  takenMs: number
  /** Told of an item whose time is over; returns what it is refused with. */
  giveUp: (item: T, taken: boolean) => Error
}

type Waiter<T, R> = {
  item: T
  since: number
  run: (items: readonly T[]) => Promise<PromiseSettledResult<R>[]>
  resolve: (value: R) => void
  reject: (error: unknown) => void
}

/** So many that are slow may be on their way beside each other. */
const MAX_RUNS = 4
/** One timer for all items: none is refused later than this after its time (ms). */
const CHECK_MS = 50

/**
 * One run at a time, each with everything that gathered during the one before.
 * @param patienceMs a run that takes longer holds up the next no more; never by default
 * @param bounds without them items wait for as long as it takes
 */
export function createGroup<T, R>(
  maxSize: number,
  patienceMs = Number.POSITIVE_INFINITY,
  bounds?: Patience<T>,
): Group<T, R> {
  let waiting: Waiter<T, R>[] = []
  let busy = false
  let starting = false
  const runs = new Set<Promise<void>>()
  const taken = new Set<{ batch: Waiter<T, R>[]; since: number }>()
  let checking: NodeJS.Timeout | undefined

  function start(): void {
    if (busy || waiting.length === 0 || runs.size >= MAX_RUNS) return
    busy = true
    const batch = waiting.slice(0, maxSize)
    waiting = waiting.slice(maxSize)
    const taking = { batch, since: bounds ? performance.now() : 0 }
    if (bounds) taken.add(taking)
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
      taken.delete(taking)
      goOn()
    })
    runs.add(run)
  }

  /** What the same turn of the event loop has brought comes along: the first of many would run alone. */
  function startSoon(): void {
    if (starting || busy) return
    starting = true
    setImmediate(() => {
      starting = false
      start()
    })
  }

  function check({ untakenMs, takenMs, giveUp }: Patience<T>): void {
    checking = undefined
    const now = performance.now()
    // They stand in the order they came in.
    const inTime = waiting.findIndex(({ since }) => now - since < untakenMs)
    const late = waiting.splice(0, inTime === -1 ? waiting.length : inTime)
    for (const { item, reject } of late) reject(giveUp(item, false))
    for (const taking of taken) {
      if (now - taking.since < takenMs) continue
      taken.delete(taking)
      for (const { item, reject } of taking.batch) reject(giveUp(item, true))
    }
    watch()
  }

  function watch(): void {
    if (!bounds || checking || (waiting.length === 0 && taken.size === 0)) return
    checking = setTimeout(() => check(bounds), CHECK_MS)
  }

  return {
    add: (item, run) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, since: bounds ? performance.now() : 0, run, resolve, reject })
        startSoon()
        watch()
      }),
    countWaiting: () => waiting.length,
    measureWait: () => (waiting[0] ? performance.now() - waiting[0].since : 0),
    async drain() {
      start()
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
