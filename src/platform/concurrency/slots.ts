/** Gives a slot back. Further calls do nothing. */
export type Release = () => void

type Waiter = (release: Release) => void

export type Slots = ReturnType<typeof createSlots>

/** Creates slots shared by holders (keys, networks, accounts). `total` is Infinity if only the holders are limited. */
export function createSlots(
  total: number,
  { perHolder = Number.POSITIVE_INFINITY }: { perHolder?: number } = {},
) {
  const held = new Map<string, number>()
  /** Holders in the order in which they were last served, the one that has waited longest first. */
  const queues = new Map<string, Set<Waiter>>()
  let taken = 0
  const countHeld = (holder: string) => held.get(holder) ?? 0
  const isFree = (holder: string) => taken < total && countHeld(holder) < perHolder

  function occupy(holder: string): Release {
    taken += 1
    held.set(holder, countHeld(holder) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      taken -= 1
      const left = countHeld(holder) - 1
      if (left > 0) held.set(holder, left)
      else held.delete(holder)
      serveWaiting()
    }
  }
  function serveWaiting(): void {
    for (let holder = findNext(); holder !== undefined; holder = findNext()) {
      const queue = queues.get(holder) ?? new Set()
      const [waiter] = queue
      queues.delete(holder)
      if (waiter) queue.delete(waiter)
      if (queue.size > 0) queues.set(holder, queue)
      waiter?.(occupy(holder))
    }
  }
  function findNext(): string | undefined {
    let next: string | undefined
    for (const holder of queues.keys()) {
      if (!isFree(holder)) continue
      if (next === undefined || countHeld(holder) < countHeld(next)) next = holder
    }
    return next
  }
  function wait(holder: string, maxWaitMs: number): Promise<Release | undefined> {
    return new Promise((resolve) => {
      const queue = queues.get(holder) ?? new Set()
      let timer: NodeJS.Timeout | undefined
      const waiter: Waiter = (release) => {
        clearTimeout(timer)
        resolve(release)
      }
      queues.set(holder, queue.add(waiter))
      if (maxWaitMs === Number.POSITIVE_INFINITY) return
      timer = setTimeout(() => {
        queue.delete(waiter)
        if (queue.size === 0) queues.delete(holder)
        resolve(undefined)
      }, maxWaitMs)
    })
  }
  return {
    /** Takes a slot; undefined if none is free, or the holder has its maximum. */
    tryTake: (holder: string) => (isFree(holder) ? occupy(holder) : undefined),
    /**
     * Takes a slot, waiting up to `maxWaitMs`. The holder with the fewest slots is next; of several, the one served
     * longest ago; within a holder, the oldest request. A request that finds a free slot overtakes nobody: whoever
     * waits could not take it.
     */
    take: (holder: string, maxWaitMs: number): Promise<Release | undefined> =>
      isFree(holder) ? Promise.resolve(occupy(holder)) : wait(holder, maxWaitMs),
    /** Counts free slots; the next two count taken slots and waiting requests. In all, or for one holder. */
    free: (holder?: string) =>
      Math.min(total - taken, holder === undefined ? total : perHolder - countHeld(holder)),
    held: (holder?: string) => (holder === undefined ? taken : countHeld(holder)),
    waiting: (holder?: string) =>
      holder === undefined
        ? [...queues.values()].reduce((sum, { size }) => sum + size, 0)
        : (queues.get(holder)?.size ?? 0),
  }
}
