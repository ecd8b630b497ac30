import { Big } from 'big.js'
import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount } from '../money.ts'
import { maskCardData } from '../platform/crypto/masking.ts'
import { MAX_RECEIVED } from './format-received.ts'
import { isPrintable, toStorable } from './storable.ts'
import type { ListedPayment, PaymentList, RoundedAmount, UnreadableEntry } from './types.ts'

const MAX_TEXT = 128
/** Binary floating point leaves differences far below this when it adds decimals of four places. */
const NOISE = new Big('0.000001')
/** Bounds the work of reading a number; an amount has at most 22 digits. */
const NUMBER = /^-?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?$/

const MEMBERS = ['id', 'status', 'amount', 'refundedAmount', 'paymentMethod'] as const
const AMOUNTS = ['amount', 'refundedAmount'] as const

/**
 * Reads the entries of an answer to QUERY_PT (specification 2.4), each by itself: one that cannot be read is
 * kept beside the others. A status or method that is no documented text is kept as a text that equals none.
 */
export function readPayments(entries: readonly unknown[]): PaymentList {
  const ids = entries.map(readId)
  const counts = new Map<string, number>()
  for (const id of ids) if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1)
  const list: PaymentList = { payments: [], unreadable: [], rounded: [], json: '', omittedBytes: 0 }
  const stored = entries.map((entry, index) => {
    const id = ids[index]
    const text = formatEntry(entry)
    const read = readEntry(entry, id, (counts.get(id ?? '') ?? 0) > 1)
    if ('reason' in read) list.unreadable.push({ id, reason: read.reason, text })
    else {
      list.payments.push(read.payment)
      list.rounded.push(...read.rounded)
    }
    return text
  })
  return { ...list, ...joinEntries(entries, stored) }
}

/** Joins the entries as far as they fit: what would not fit is shortened, then left out, and counted. */
function joinEntries(
  entries: readonly unknown[],
  texts: readonly string[],
): Pick<PaymentList, 'json' | 'omittedBytes'> {
  const json = `[${texts.join(',')}]`
  // A character takes at most three bytes.
  if (json.length * 3 <= MAX_RECEIVED || Buffer.byteLength(json) <= MAX_RECEIVED) {
    return { json, omittedBytes: 0 }
  }
  const kept: string[] = []
  let size = 2
  let omittedBytes = 0
  for (const [index, text] of texts.entries()) {
    const whole = Buffer.byteLength(text)
    const fits = size + whole + 1 <= MAX_RECEIVED
    const shown = fits ? text : shortenEntry(entries[index])
    const bytes = fits ? whole : Buffer.byteLength(shown)
    const isKept = size + bytes + 1 <= MAX_RECEIVED
    if (isKept) {
      kept.push(shown)
      size += bytes + 1
    }
    omittedBytes += isKept ? whole - bytes : whole
  }
  return { json: `[${kept.join(',')}]`, omittedBytes }
}

type ReadEntry =
  | { payment: ListedPayment; rounded: RoundedAmount[] }
  | Pick<UnreadableEntry, 'reason'>

function readEntry(entry: unknown, id: string | undefined, isRepeated: boolean): ReadEntry {
  if (!isObject(entry)) return { reason: 'is not an object' }
  if (id === undefined) return { reason: 'has no id' }
  if (isRepeated) return { reason: 'has an id that is listed twice' }
  const rounded: RoundedAmount[] = []
  const amounts = { amount: '', refundedAmount: '' }
  for (const field of AMOUNTS) {
    const value = readMember(entry, field)
    if (value === undefined) return { reason: `has no ${field}` }
    const written = isLosslessNumber(value) ? value.value : undefined
    const amount = written === undefined ? undefined : readAmount(written)
    if (written === undefined || amount === undefined) {
      return { reason: `has a value as its ${field} that is no amount` }
    }
    amounts[field] = amount.value
    if (amount.isRounded) rounded.push({ id, field, written, amount: amount.value })
  }
  const payment = {
    id,
    status: readWord(readMember(entry, 'status')),
    ...amounts,
    paymentMethod: readWord(readMember(entry, 'paymentMethod')),
  }
  return { payment, rounded }
}

function readId(entry: unknown): string | undefined {
  const id = isObject(entry) ? readMember(entry, 'id') : undefined
  if (typeof id !== 'string' || id === '' || id.length > MAX_TEXT) return undefined
  return isPrintable(id) ? id : undefined
}

/** Reads an amount of at most four decimals, or one that binary floating point has shifted off such a decimal. */
function readAmount(text: string): { value: string; isRounded: boolean } | undefined {
  const exact = parseAmount(text)
  if (exact !== undefined) return { value: exact, isRounded: false }
  if (!NUMBER.test(text)) return undefined
  const number = new Big(text)
  const near = number.round(4)
  if (number.minus(near).abs().gt(NOISE)) return undefined
  const value = parseAmount(near.eq(0) ? '0' : near.toFixed())
  return value === undefined ? undefined : { value, isRounded: true }
}

/** Any other value than a clean text becomes its JSON, so that it never equals a documented value. */
function readWord(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string' && isPrintable(value) && value.length <= MAX_TEXT) return value
  return cut(stringify(toStorable(value)) ?? '')
}

/** The entry as JSON that Postgres can store, with every member it had, card data and credentials masked. */
function formatEntry(entry: unknown): string {
  return stringify(toStorable(maskCardData(entry))) ?? 'null'
}

/** The entry with the members that the specification defines alone, each shortened. */
function shortenEntry(entry: unknown): string {
  const known = isObject(entry)
    ? MEMBERS.map((name) => [name, shorten(readMember(entry, name))] as const)
    : []
  return JSON.stringify({ ...Object.fromEntries(known), shortened: true })
}

function shorten(value: unknown): string | undefined {
  return value === undefined ? undefined : cut(stringify(toStorable(maskCardData(value))) ?? '')
}

function cut(text: string): string {
  return text.slice(0, MAX_TEXT).toWellFormed()
}

function readMember(entry: object, name: string): unknown {
  return Object.hasOwn(entry, name) ? Reflect.get(entry, name) : undefined
}

function isObject(value: unknown): value is object {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}
