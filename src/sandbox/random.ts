/**
 * Returns a repeatable generator of numbers in [0, 1): the same seed gives the same sequence
 * (mulberry32).
 */
export function makeRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Returns a whole number from 0 to below `max`. */
export type Pick = (max: number) => number

/** Derives whole numbers from a generator of numbers in [0, 1). */
export function makePick(random: () => number): Pick {
  return (max) => Math.floor(random() * max)
}
