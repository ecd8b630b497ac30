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
}

/** @param reserved so many are kept from any single holder, if there are enough */
export function createSlots(total: number, reserved = 0): Slots {
  let free = total
  const held = new Map<string, number>()
  const countHeld = (holder: string) => held.get(holder) ?? 0
  return {
    cap: Math.max(1, total - reserved),
    takeAll() {
      const taken = free
      free = 0
      return taken
    },
    give(count) {
      free += count
    },
    countFree: () => free,
    assign(holder) {
      held.set(holder, countHeld(holder) + 1)
    },
    giveBack(holder) {
      const left = countHeld(holder) - 1
      if (left > 0) held.set(holder, left)
      else held.delete(holder)
      free += 1
    },
    countHeld,
  }
}
