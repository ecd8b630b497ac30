import { randomInt } from 'node:crypto'
import type { Pick } from './random.ts'

// Only the identifiers of a seeded population are repeatable; all others use the system's generator.

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const LETTERS_AND_DIGITS = `${LETTERS}0123456789`

/** Makes a transaction identifier: UTC date and time to the second, then six letters. */
export function makeTransactionId(now: Date, pick: Pick = randomInt): string {
  const digits = now.toISOString().replaceAll(/\D/g, '').slice(2, 14)
  return digits + pickCharacters(LETTERS, 6, pick)
}

/** Makes a refund identifier (`transId`, specification 2.5): twelve letters and digits. */
export function makeRefundId(pick: Pick = randomInt): string {
  return pickCharacters(LETTERS_AND_DIGITS, 12, pick)
}

/** Makes a refund's request identifier in the form of a version 4 UUID. */
export function makeRequestId(pick: Pick): string {
  const hex = pickCharacters('0123456789abcdef', 30, pick)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(12, 15)}-8${hex.slice(15, 18)}-${hex.slice(18)}`
}

/**
 * Picks the start of a sandbox's numeric payment identifiers. The range is wide because a service's
 * database outlives the sandbox: later sandboxes must not reuse its numbers.
 */
export function pickFirstPaymentId(): number {
  return randomInt(10 ** 9, 10 ** 12)
}

function pickCharacters(alphabet: string, count: number, pick: Pick): string {
  return Array.from({ length: count }, () => alphabet.charAt(pick(alphabet.length))).join('')
}
