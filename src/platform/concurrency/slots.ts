/** Gives a slot back. A second call does nothing. */
export type Release = () => void

type Waiter = (release: Release) => void

export type Slots = ReturnType<typeof createSlots>

/**
 * Creates slots shared by holders: a key, a network, an account. Whoever takes one gives it back.
 * @param total Infinity where only the holders have a limit
 * @param limits the most slots of one holder
 */
export function createSlots(
  total: number,
  { perHolder = Number.POSITIVE_INFINITY }: { perHolder?: number } = {},
) {
  const held = new Map<string, number>()
  /** The first holder is the one that has waited longest: who is served goes to the end. */
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
    /** Takes a slot; undefined if none is free, or the holder has as many as it may. */
    tryTake: (holder: string) => (isFree(holder) ? occupy(holder) : undefined),
    /**
     * Takes a slot, and waits for it if it has to, but no longer than `maxWaitMs`. The holder with the fewest slots is
     * next; of several the one that has waited longest since it was served; of one holder the request that waits longest.
     * Whoever waits has no free slot, or has as many as it may: a request that finds one free overtakes nobody.
     */
    take: (holder: string, maxWaitMs: number): Promise<Release | undefined> =>
      isFree(holder) ? Promise.resolve(occupy(holder)) : wait(holder, maxWaitMs),
    /** Counts the slots that are free: all of them, or those that a holder may take now. */
    free: (holder?: string) =>
      Math.min(total - taken, holder === undefined ? total : perHolder - countHeld(holder)),
    /** Counts the slots that are taken: all of them, or those of one holder. */
    held: (holder?: string) => (holder === undefined ? taken : countHeld(holder)),
    /** Counts the requests that wait: all of them, or those of one holder. */
    waiting: (holder?: string) =>
      holder === undefined
        ? [...queues.values()].reduce((sum, { size }) => sum + size, 0)
        : (queues.get(holder)?.size ?? 0),
  }
}
