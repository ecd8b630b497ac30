import { Big } from 'big.js'

/** At most 18 digits before and 4 after the point, no sign, no exponent, no leading zero. */
const AMOUNT = /^(?:0|[1-9]\d{0,17})(?:\.\d{1,4})?$/
/** What a JSON number may look like once more than that: `2.0E7` is how some gateways print 20000000. */
const WITH_EXPONENT = /^\d{1,19}(?:\.\d{1,24})?[eE][+-]?\d{1,2}$/

/**
 * Reads an amount and keeps it as it was written: `10000.50` stays `10000.50`. A number with an
 * exponent is written out (`2.0E7` becomes `20000000`).
 * @returns a decimal string, or `undefined` when the text is no amount
 */
export function parseAmount(text: string): string | undefined {
  if (AMOUNT.test(text)) return text
  if (!WITH_EXPONENT.test(text)) return undefined
  const plain = new Big(text).toFixed()
  return AMOUNT.test(plain) ? plain : undefined
}

/** The sum of decimal strings, with as many decimals as the most precise of them (as SQL `numeric` does). */
export function addAmounts(amounts: readonly string[]): string {
  const sum = amounts.reduce((total, amount) => total.plus(amount), new Big(0))
  return sum.toFixed(Math.max(0, ...amounts.map(countDecimals)))
}

/** `-1`, `0` or `1`, by value: `10.5` equals `10.50`. */
export function compareAmounts(a: string, b: string): -1 | 0 | 1 {
  return new Big(a).cmp(b)
}

/** The shortest plain form, as amounts go out on the wire: `10000.50` becomes `10000.5`. */
export function shortenAmount(amount: string): string {
  return new Big(amount).toFixed()
}

function countDecimals(amount: string): number {
  const point = amount.indexOf('.')
  return point === -1 ? 0 : amount.length - point - 1
}

/** `a - b`, never below zero, with as many decimals as the more precise of the two. */
export function subtractAmount(a: string, b: string): string {
  const rest = new Big(a).minus(b)
  const decimals = Math.max(countDecimals(a), countDecimals(b))
  return rest.lt(0) ? '0' : rest.toFixed(decimals)
}
