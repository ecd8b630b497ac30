import { Big } from 'big.js'

/** At most 18 digits before the point and 4 after it; no sign, exponent or leading zero. */
const AMOUNT = /^(?:0|[1-9]\d{0,17})(?:\.\d{1,4})?$/
/** A JSON number with an exponent: some gateways print 20000000 as `2.0E7`. */
const WITH_EXPONENT = /^\d{1,19}(?:\.\d{1,24})?[eE][+-]?\d{1,2}$/

/**
 * Parses an amount without changing its form: `10000.50` stays. Only a number with an exponent is expanded.
 * @returns a decimal string, or `undefined` if the text is not an amount
 */
export function parseAmount(text: string): string | undefined {
  if (AMOUNT.test(text)) return text
  if (!WITH_EXPONENT.test(text)) return undefined
  const plain = new Big(text).toFixed()
  return AMOUNT.test(plain) ? plain : undefined
}

/** One to three digits, groups of three after one kind of separator, and perhaps decimals after another. */
const GROUPED = /^[1-9]\d{0,2}([., \u00a0\u202f'])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d{1,2})?$/
const CURRENCY = /^(?:[A-Z]{3}|[₫đĐ])\s*|\s*(?:[A-Za-z]{3}|[₫đĐ])$/gu

/**
 * Reads an amount as people write it: `1.110.000`, `37,000 VND`, `150.000đ`, `1 110 000`, `1.110,50`. Three digits
 * after a single separator are a group: currencies with three decimals are rare, and people do not write all of them.
 * @returns a decimal string, or `undefined` if the text is not an amount
 */
export function readWrittenAmount(text: string): string | undefined {
  const digits = text.trim().replaceAll(CURRENCY, '')
  const [, separator = ''] = GROUPED.exec(digits) ?? []
  const whole = separator === '' ? digits : digits.replaceAll(separator, '')
  return parseAmount(whole.replace(/,(\d{1,2})$/, '.$1'))
}

/** Adds decimal strings. The sum has as many decimals as the most precise of them, as in SQL `numeric`. */
export function addAmounts(amounts: readonly string[]): string {
  const sum = amounts.reduce((total, amount) => total.plus(amount), new Big(0))
  return sum.toFixed(Math.max(0, ...amounts.map(countDecimals)))
}

/** Whether a decimal string without a sign is above zero. */
export function isPositive(amount: string): boolean {
  return /[1-9]/.test(amount)
}

/** By value: `10.5` equals `10.50`. */
export function compareAmounts(a: string, b: string): -1 | 0 | 1 {
  return new Big(a).cmp(b)
}

/** Returns the shortest plain form, as sent on the wire: `10000.50` becomes `10000.5`. */
export function shortenAmount(amount: string): string {
  return new Big(amount).toFixed()
}

function countDecimals(amount: string): number {
  const point = amount.indexOf('.')
  return point === -1 ? 0 : amount.length - point - 1
}

/** Subtracts `b` from `a`, with a minimum of zero, keeping the decimals of the more precise of the two. */
export function subtractAmount(a: string, b: string): string {
  const difference = new Big(a).minus(b)
  const decimals = Math.max(countDecimals(a), countDecimals(b))
  return difference.lt(0) ? '0' : difference.toFixed(decimals)
}

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

/** Decimals by currency. They are kept because creating a number format takes up to 0.2 ms. */
const knownDecimals = new Map<string, number>()

/** Notifications vary in how they spell a currency. */
const foldCurrency = (currency: string | null) => currency?.trim().toUpperCase() ?? ''

/** Returns the decimals of a currency (ISO 4217), however it is spelt; undefined if it is unknown or not verified. */
export function findDecimals(currency: string | null): number | undefined {
  const code = foldCurrency(currency)
  return CURRENCIES.has(code) ? readDecimals(code) : undefined
}

/** @param currency three letters; an unknown currency has two decimals */
function readDecimals(currency: string): number {
  const known = knownDecimals.get(currency)
  if (known !== undefined) return known
  const format = new Intl.NumberFormat('en', { style: 'currency', currency })
  const { maximumFractionDigits = 4 } = format.resolvedOptions()
  knownDecimals.set(currency, maximumFractionDigits)
  return maximumFractionDigits
}

/** Whether the value of an amount has more decimals than its currency (ISO 4217). An unknown currency has no limit. */
export function exceedsDecimals(amount: string, currency: string): boolean {
  const most = findDecimals(currency)
  return most !== undefined && countDecimals(shortenAmount(amount)) > most
}

/** Counts the decimals to show: all but trailing zeros that the currency has not. Unknown currencies have two. */
export function countShownDecimals(amount: string, currency: string | null): number {
  const [, decimals = ''] = amount.split('.')
  const needed = decimals.replace(/0+$/, '').length
  const own = findDecimals(currency) ?? 2
  return Math.max(needed, Math.min(decimals.length, needed > own ? 2 : own))
}

const LEAST_OF_UNKNOWN = '0.01'

/** Returns the smallest amount of a currency (ISO 4217): 1 for VND, 0.01 for USD and for unknown ones. */
export function findLeastAmount(currency: string | null): string {
  const code = foldCurrency(currency)
  if (!/^[A-Z]{3}$/.test(code)) return LEAST_OF_UNKNOWN
  return new Big(10).pow(-readDecimals(code)).toFixed()
}
