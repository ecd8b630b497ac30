import { randomInt } from 'node:crypto'

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LETTERS_AND_DIGITS = `${LETTERS}0123456789`

/**
 * A repeatable generator of numbers in [0, 1): the same seed gives the same sequence (mulberry32).
 * Identifiers come from the system's generator, but for those of a seeded population.
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

/** A whole number from 0 to below `max`. */
export type Pick = (max: number) => number

/** Picks by a repeatable generator. */
export function makePick(random: () => number): Pick {
  return (max) => Math.floor(random() * max)
}

/** A transaction identifier: UTC date and time to the second, then six letters. */
export function makeTransactionId(now: Date, pick: Pick = randomInt): string {
  const digits = now.toISOString().replaceAll(/\D/g, '').slice(2, 14)
  return digits + pickCharacters(LETTERS, 6, pick)
}

/** A refund identifier (`transId`, specification 2.5): twelve letters and digits. */
export function makeRefundId(pick: Pick = randomInt): string {
  return pickCharacters(LETTERS_AND_DIGITS, 12, pick)
}

/** A refund's request identifier in the form of a version 4 UUID. */
export function makeRequestId(pick: Pick): string {
  const hex = pickCharacters('0123456789abcdef', 30, pick)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-8${hex.slice(15, 18)}-${hex.slice(18)}`
}

/**
 * A starting point for numeric payment identifiers. Far apart for every sandbox, because the
 * database behind a service outlives the sandbox that numbered its payments.
 */
export function pickFirstPaymentId(): number {
  return randomInt(10 ** 9, 10 ** 12)
}

function pickCharacters(alphabet: string, count: number, pick: Pick): string {
  return Array.from({ length: count }, () => alphabet.charAt(pick(alphabet.length))).join('')
}
