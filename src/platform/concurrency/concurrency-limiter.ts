/** Limits how many calls may be in flight at once. A caller that acquires a slot must release it. */
export type ConcurrencyLimiter = {
  /** The most slots that one holder may have at once. */
  maxPerHolder: number
  /** Acquires every free slot; returns how many. */
  acquireAll(): number
  /** Releases slots that are not assigned to a holder. */
  release(count: number): void
  countFree(): number
  /** Assigns one of the acquired slots to a holder. */
  assign(holder: string): void
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

export type LimiterOptions = {
  /** Slots that no single holder may take, as far as the total allows. */
  reserved?: number
  /** The most commits beside the calls: more would wait for each other and time out. By default `total`. */
  maxCommits?: number
  /** Milliseconds on a monotonic clock. */
  now?: () => number
}

export function createConcurrencyLimiter(
  total: number,
  { reserved = 0, maxCommits = total, now = () => performance.now() }: LimiterOptions = {},
): ConcurrencyLimiter {
  let acquired = 0
  let committing = 0
  let limit = total
  let halvedAt = Number.NEGATIVE_INFINITY
  const countFree = () => Math.max(0, Math.floor(limit) - acquired)
  const assigned = new Map<string, number>()
  const countAssigned = (holder: string) => assigned.get(holder) ?? 0
  function releaseAssigned(holder: string): void {
    const left = countAssigned(holder) - 1
    if (left > 0) assigned.set(holder, left)
    else assigned.delete(holder)
    acquired -= 1
  }
  return {
    maxPerHolder: Math.max(1, total - reserved),
    acquireAll() {
      const free = countFree()
      acquired += free
      return free
    },
    release(count) {
      acquired -= count
    },
    countFree,
    assign(holder) {
      assigned.set(holder, countAssigned(holder) + 1)
    },
    releaseAssigned,
    countAssigned,
    hasCommitCapacity: () => committing < maxCommits,
    releaseForCommit(holder) {
      releaseAssigned(holder)
      committing += 1
      return () => {
        committing -= 1
      }
    },
    recordOutcome(answered, startedAt) {
      if (answered) limit = Math.min(total, limit + 1 / limit)
      else if (startedAt > halvedAt) {
        limit = Math.max(1, limit / 2)
        halvedAt = now()
      }
    },
    currentLimit: () => Math.floor(limit),
  }
}
