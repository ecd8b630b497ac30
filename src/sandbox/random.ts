import { randomInt } from 'node:crypto'

/** Makes a generator of numbers in [0, 1) that the seed repeats (mulberry32). */
export function makeRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export type PickNumber = (max: number) => number

export function makePick(random: () => number): PickNumber {
  return (max) => Math.floor(random() * max)
}

// Only the ids of a seeded population are repeatable; all others come from the system's generator.

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LETTERS_AND_DIGITS = `${LETTERS}0123456789`

export function makeTransactionId(now: Date, pick: PickNumber = randomInt): string {
  const digits = now.toISOString().replaceAll(/\D/g, '').slice(2, 14)
  return digits + pickCharacters(LETTERS, 6, pick)
}

export function makeRefundId(pick: PickNumber = randomInt): string {
  return pickCharacters(LETTERS_AND_DIGITS, 12, pick)
}

export function makeRequestId(pick: PickNumber): string {
  const hex = pickCharacters('0123456789abcdef', 30, pick)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-8${hex.slice(15, 18)}-${hex.slice(18)}`
}

/** The range is wide because a service's database outlives the sandbox: later sandboxes must not reuse its ids. */
export function pickFirstPaymentId(): number {
  return randomInt(10 ** 9, 10 ** 12)
}

function pickCharacters(alphabet: string, count: number, pick: PickNumber): string {
  return Array.from({ length: count }, () => alphabet.charAt(pick(alphabet.length))).join('')
}
