/** How much may be in flight at once; whoever takes a slot gives it back. */
export type Slots = {
  /** How many one holder may have at once. */
  cap: number
  /** Takes every free slot; returns how many. */
  takeAll(): number
  give(count: number): void
  countFree(): number
  /** Says who uses one of the slots taken. */
  assign(holder: string): void
  /** Gives back one that was assigned. */
  giveBack(holder: string): void
  countHeld(holder: string): number
  /** Whether one more answer may be written down while its slot is in use again. */
  mayEndCall(): boolean
  /**
   * A call is over: its slot is free for the next one while its answer is being written down.
   * @returns to be called once that is done
   */
  endCall(holder: string): () => void
  /**
   * What a call says about how many at once the other side bears: one without an answer halves it, one
   * with an answer adds a little, up to the total.
   * @param began when the call did; what began before the last halving says nothing anew (ms)
   */
  learn(answered: boolean, began: number): void
  /** How many may be in flight by what was learnt. */
  countLimit(): number
}

export type SlotOptions = {
  /** So many are kept from any single holder, if there are enough. */
  reserved?: number
  /** So many answers may be written down beside the slots: more would wait for each other, and run out of time. */
  writers?: number
  /** Milliseconds on a clock that only goes forward. */
  now?: () => number
}

export function createSlots(
  total: number,
  { reserved = 0, writers = total, now = () => performance.now() }: SlotOptions = {},
): Slots {
  let taken = 0
  let writing = 0
  let limit = total
  let halvedAt = Number.NEGATIVE_INFINITY
  const countFree = () => Math.max(0, Math.floor(limit) - taken)
  const held = new Map<string, number>()
  const countHeld = (holder: string) => held.get(holder) ?? 0
  function giveBack(holder: string): void {
    const left = countHeld(holder) - 1
    if (left > 0) held.set(holder, left)
    else held.delete(holder)
    taken -= 1
  }
  return {
    cap: Math.max(1, total - reserved),
    takeAll() {
      const free = countFree()
      taken += free
      return free
    },
    give(count) {
      taken -= count
    },
    countFree,
    assign(holder) {
      held.set(holder, countHeld(holder) + 1)
    },
    giveBack,
    countHeld,
    mayEndCall: () => writing < writers,
    endCall(holder) {
      giveBack(holder)
      writing += 1
      return () => {
        writing -= 1
      }
    },
    learn(answered, began) {
      if (answered) limit = Math.min(total, limit + 1 / limit)
      else if (began > halvedAt) {
        limit = Math.max(1, limit / 2)
        halvedAt = now()
      }
    },
    countLimit: () => Math.floor(limit),
  }
}
