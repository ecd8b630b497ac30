/** Limits how many calls may be in flight at once. A caller that acquires a slot must release it. */
export type ConcurrencyLimiter = {
  /** The most slots that one holder may have at once. */
  readonly maxPerHolder: number
  /** Acquires every free slot; returns how many. */
  acquireAll(): number
  /** Releases slots that are not assigned to a holder. */
  release(count: number): void
  countFree(): number
  /** Assigns one of the acquired slots to a holder. */
  assign(holder: string): void
  /**
   * Waits for a slot and assigns it to the holder. Of the holders that wait, the one with the fewest slots is
   * next, of several the one that was served longest ago, but none that has `maxPerHolder`; within a holder, the one
   * that has waited longest.
   */
  acquire(holder: string): SlotRequest
  /** Counts the requests that wait in `acquire`: all of them, or those of one holder. */
  countWaiting(holder?: string): number
  /** Releases one slot that was assigned to the holder. */
  releaseAssigned(holder: string): void
  countAssigned(holder: string): number
  /** Returns whether one more commit may run beside the calls: see `releaseForCommit`. */
  hasCommitCapacity(): boolean
  /**
   * Releases the holder's slot when its call has ended, so that the next call can begin while the answer is
   * being committed.
   * @returns to be called when that commit has ended
   */
  releaseForCommit(holder: string): () => void
  /**
   * Adapts the limit to a call's outcome (additive increase, multiplicative decrease): a call without an
   * answer halves it, one with an answer raises it slightly, up to the total.
   * @param startedAt when the call began (ms, by `now`); calls that began before the last halving do not halve it again
   */
  recordOutcome(answered: boolean, startedAt: number): void
  /** Returns how many calls may be in flight at present. */
  currentLimit(): number
}

/** A request for a slot that may have to wait for it. */
export type SlotRequest = {
  /** Resolves to true with a slot, or to false without one if the request was given up. */
  ready: Promise<boolean>
  /** Stops waiting. Does nothing once the slot is assigned. */
  giveUp(): void
}

export type LimiterOptions = {
  /** Returns the slots that no single holder may take, as far as the total allows; it may change. */
  reserved?: () => number
  /** The most commits beside the calls: it bounds the answers that wait in memory. By default `total`. */
  maxCommits?: number
  /** Milliseconds on a monotonic clock. */
  now?: () => number
}

export function createConcurrencyLimiter(
  total: number,
  { reserved = () => 0, maxCommits = total, now = () => performance.now() }: LimiterOptions = {},
): ConcurrencyLimiter {
  const findMaxPerHolder = () => Math.max(1, total - reserved())
  const limit = createAdaptiveLimit(total, now)
  const slots = createAssignments()
  const waiting = createWaiters()
  let acquired = 0
  let committing = 0
  const countFree = () => Math.max(0, limit.current() - acquired)
  function startWaiting(): void {
    while (countFree() > 0) {
      const holder = waiting.startNext(slots.count, findMaxPerHolder())
      if (holder === undefined) return
      acquired += 1
      slots.assign(holder)
    }
  }
  function release(count: number): void {
    acquired -= count
    startWaiting()
  }
  function releaseAssigned(holder: string): void {
    slots.remove(holder)
    release(1)
  }
  return {
    get maxPerHolder() {
      return findMaxPerHolder()
    },
    acquireAll() {
      const free = countFree()
      acquired += free
      return free
    },
    release,
    countFree,
    assign: slots.assign,
    acquire(holder) {
      const request = waiting.add(holder)
      startWaiting()
      return request
    },
    countWaiting: waiting.count,
    releaseAssigned,
    countAssigned: slots.count,
    hasCommitCapacity: () => committing < maxCommits,
    releaseForCommit(holder) {
      releaseAssigned(holder)
      committing += 1
      return () => {
        committing -= 1
      }
    },
    recordOutcome(answered, startedAt) {
      limit.record(answered, startedAt)
      startWaiting()
    },
    currentLimit: limit.current,
  }
}

function createAdaptiveLimit(total: number, now: () => number) {
  let limit = total
  let halvedAt = Number.NEGATIVE_INFINITY
  return {
    current: () => Math.floor(limit),
    record(answered: boolean, startedAt: number): void {
      if (answered) limit = Math.min(total, limit + 1 / limit)
      else if (startedAt > halvedAt) {
        limit = Math.max(1, limit / 2)
        halvedAt = now()
      }
    },
  }
}

/** Counts the slots of each holder. */
function createAssignments() {
  const assigned = new Map<string, number>()
  const count = (holder: string) => assigned.get(holder) ?? 0
  return {
    count,
    assign(holder: string): void {
      assigned.set(holder, count(holder) + 1)
    },
    remove(holder: string): void {
      const left = count(holder) - 1
      if (left > 0) assigned.set(holder, left)
      else assigned.delete(holder)
    },
  }
}

type Waiter = { holder: string; start: () => void }

/** Requests that wait for a slot, oldest first. */
function createWaiters() {
  const waiting: Waiter[] = []
  /** When holders were last served, in turns; kept while anybody waits. */
  const served = new Map<string, number>()
  let turn = 0
  function remove(waiter: Waiter): boolean {
    const index = waiting.indexOf(waiter)
    if (index !== -1) waiting.splice(index, 1)
    return index !== -1
  }
  return {
    add(holder: string): SlotRequest {
      let resolve: (hasSlot: boolean) => void = () => {}
      const ready = new Promise<boolean>((settle) => {
        resolve = settle
      })
      const waiter = { holder, start: () => resolve(true) }
      waiting.push(waiter)
      return {
        ready,
        giveUp() {
          if (remove(waiter)) resolve(false)
        },
      }
    },
    /** @returns the holder whose request gets a slot; undefined when none may */
    startNext(countSlots: (holder: string) => number, maxPerHolder: number): string | undefined {
      const next = findNext(waiting, countSlots, maxPerHolder, served)
      if (!next) return undefined
      remove(next)
      turn += 1
      served.set(next.holder, turn)
      if (waiting.length === 0) served.clear()
      next.start()
      return next.holder
    },
    count: (holder?: string) =>
      holder === undefined
        ? waiting.length
        : waiting.filter((waiter) => waiter.holder === holder).length,
  }
}

function findNext(
  waiting: readonly Waiter[],
  countAssigned: (holder: string) => number,
  maxPerHolder: number,
  served: ReadonlyMap<string, number>,
): Waiter | undefined {
  let next: Waiter | undefined
  let fewest = maxPerHolder
  let oldest = 0
  for (const waiter of waiting) {
    const held = countAssigned(waiter.holder)
    const lastServed = served.get(waiter.holder) ?? 0
    if (held > fewest || held >= maxPerHolder) continue
    if (next && held === fewest && lastServed >= oldest) continue
    next = waiter
    fewest = held
    oldest = lastServed
  }
  return next
}
