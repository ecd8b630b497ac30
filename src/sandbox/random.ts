import { randomInt } from 'node:crypto'

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LETTERS_AND_DIGITS = `${LETTERS}0123456789`

/**
 * A repeatable generator of numbers in [0, 1): the same seed gives the same sequence (mulberry32).
 * For faults and shuffles only; identifiers come from the system's generator.
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

/** A transaction identifier: UTC date and time to the second, then six letters. */
export function makeTransactionId(now: Date): string {
  const digits = now.toISOString().replaceAll(/\D/g, '').slice(2, 14)
  return digits + pickCharacters(LETTERS, 6)
}

/** A refund identifier (`transId`, specification 2.5): twelve letters and digits. */
export function makeRefundId(): string {
  return pickCharacters(LETTERS_AND_DIGITS, 12)
}

/**
 * A starting point for numeric payment identifiers. Far apart for every sandbox, because the
 * database behind a service outlives the sandbox that numbered its payments.
 */
export function pickFirstPaymentId(): number {
  return randomInt(10 ** 9, 10 ** 12)
}

function pickCharacters(alphabet: string, count: number): string {
  return Array.from({ length: count }, () => alphabet.charAt(randomInt(alphabet.length))).join('')
}
