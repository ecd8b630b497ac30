/** How much may be in flight at once; whoever takes a slot gives it back. */
export type Slots = {
  /** Takes every free slot; returns how many. */
  takeAll(): number
  give(count: number): void
  countFree(): number
}

export function createSlots(total: number): Slots {
  let free = total
  return {
    takeAll() {
      const taken = free
      free = 0
      return taken
    },
    give(count) {
      free += count
    },
    countFree: () => free,
  }
}
