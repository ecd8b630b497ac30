import { Big } from 'big.js'
import { isLosslessNumber, type LosslessNumber, parse, stringify } from 'lossless-json'
import { z } from 'zod'
import { parseAmount } from '../money.ts'
import { maskCardData } from '../platform/crypto/masking.ts'
import { isObject, tryParse } from './parse-body.ts'
import {
  formatMembers,
  formatText,
  isId,
  keepWithin,
  MAX_ID,
  toMessage,
  toStorable,
} from './storable.ts'
import type { GatewayAnswer, ListedPayment, PaymentList, Read, RoundedAmount } from './types.ts'

const number = z.custom<LosslessNumber>((value) => isLosslessNumber(value), 'is not a number')

/** Normalised to one text per value, so that `0.0` is the code `0` and `1e-400` is no code. */
export const responseCode = number.transform(({ value }, ctx) => {
  if (/^-?\d{1,9}(?:\.0{1,9})?$/.test(value)) return String(Number(value))
  ctx.addIssue('is not a whole number')
  return z.NEVER
})

const paymentList = z.array(z.unknown(), 'is not an array').transform(readPayments)

const refundResult = z.unknown().transform(readTransId)

/** Reads the answer to QUERY_PT (specification 4.3.1), which is `unknown` without a code and a list of payments. */
export function readPaymentsAnswer(body: Buffer, prefix: string): Read<GatewayAnswer<PaymentList>> {
  const members = parseObject(body)
  const answer = judgeAnswer(members, prefix, paymentList)
  if (!members || answer.kind !== 'answered') return { answer, received: formatBody(body, members) }
  const { json, omittedBytes } = answer.value
  const rest = Object.entries(members).filter(([name, value]) => {
    const isStored = name === `${prefix}_ResponseCode` || name === `${prefix}_ResponseData`
    return !isStored && !(name === `${prefix}_ResponseMsg` && value === answer.message)
  })
  if (rest.length === 0 && omittedBytes === 0) return { answer, received: undefined }
  const elsewhere = { bytes: Buffer.byteLength(json), omittedBytes }
  return { answer, received: formatMembers(Object.fromEntries(rest), elsewhere) }
}

/** Reads the answer to REFUND (specification 4.3.2). Code 0 accepts the refund, also without the gateway's id of it. */
export function readRefundAnswer(
  body: Buffer,
  prefix: string,
): Read<GatewayAnswer<string | undefined>> {
  const members = parseObject(body)
  return { answer: judgeAnswer(members, prefix, refundResult), received: formatBody(body, members) }
}

/** Formats any response for storage, even one that is not the gateway's, such as a proxy's error page. */
export function formatBody(body: Buffer, members = parseObject(body)): string | undefined {
  return members ? formatMembers(members) : formatText(body)
}

function judgeAnswer<T>(
  answer: Record<string, unknown> | undefined,
  prefix: string,
  data: z.ZodType<T>,
): GatewayAnswer<T> {
  if (!answer) return { kind: 'unknown', reason: 'the answer is not a JSON object' }
  const code = responseCode.safeParse(answer[`${prefix}_ResponseCode`])
  if (!code.success) {
    return { kind: 'unknown', reason: `${prefix}_ResponseCode ${code.error.issues[0]?.message}` }
  }
  const message = toMessage(answer[`${prefix}_ResponseMsg`])
  if (code.data !== '0') return { kind: 'rejected', code: code.data, message }
  const parsed = data.safeParse(answer[`${prefix}_ResponseData`])
  if (parsed.success) return { kind: 'answered', value: parsed.data, message }
  return { kind: 'unknown', reason: `${prefix}_ResponseData ${parsed.error.issues[0]?.message}` }
}

export function parseObject(body: Buffer): Record<string, unknown> | undefined {
  const value = tryParse(() => parse(new TextDecoder('utf-8', { fatal: true }).decode(body)))
  return isObject(value) ? value : undefined
}

/** Errors of binary floating point stay far below this when it adds decimals of four places. */
const NOISE = new Big('0.000001')
/** Bounds the work of reading a number. An amount has at most 22 digits. */
const NUMBER = /^-?\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?$/

const MEMBERS = ['id', 'status', 'amount', 'refundedAmount', 'paymentMethod'] as const
const AMOUNTS = ['amount', 'refundedAmount'] as const

/** Reads the entries of QUERY_PT (specification 2.4). One that cannot be read does not affect the others. */
function readPayments(entries: readonly unknown[]): PaymentList {
  const ids = entries.map(readId)
  const counts = new Map<string | undefined, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  const payments: ListedPayment[] = []
  const unreadable: PaymentList['unreadable'] = []
  const rounded: RoundedAmount[] = []
  const texts = entries.map((entry, index) => {
    const id = ids[index]
    const text = formatEntry(entry)
    const read = readEntry(entry, id, (counts.get(id) ?? 0) > 1)
    if (typeof read === 'string') unreadable.push({ id, reason: read, text })
    else {
      payments.push(read.payment)
      rounded.push(...read.rounded)
    }
    return text
  })
  const { kept, omittedBytes } = keepWithin(texts, 1, (at) => shortenEntry(entries[at]))
  return { payments, unreadable, rounded, json: `[${kept.join(',')}]`, omittedBytes }
}

/** Returns the payment, or the predicate of a sentence that says why the entry cannot be read. */
function readEntry(entry: unknown, id: string | undefined, isRepeated: boolean) {
  if (!isObject(entry)) return 'is not an object'
  if (id === undefined) return 'has no id'
  if (isRepeated) return 'has an id that is listed twice'
  const status = readWord(readMember(entry, 'status'))
  const paymentMethod = readWord(readMember(entry, 'paymentMethod'))
  const payment: ListedPayment = { id, status, amount: '', refundedAmount: '', paymentMethod }
  const rounded: RoundedAmount[] = []
  for (const field of AMOUNTS) {
    const value = readMember(entry, field)
    if (value === undefined) return `has no ${field}`
    const written = isLosslessNumber(value) ? value.value : ''
    const amount = readAmount(written)
    if (amount === undefined) return `has a value as its ${field} that is no amount`
    payment[field] = amount.value
    if (amount.isRounded) rounded.push({ id, field, written, amount: amount.value })
  }
  return { payment, rounded }
}

function readId(entry: unknown): string | undefined {
  const id = isObject(entry) ? readMember(entry, 'id') : undefined
  return typeof id === 'string' && isId(id) ? id : undefined
}

/** Some gateways write ids as numbers. */
function readTransId(result: unknown): string | undefined {
  const id = isObject(result) ? readMember(result, 'transId') : undefined
  const text = isLosslessNumber(id) ? id.value : id
  return typeof text === 'string' && isId(text) ? text : undefined
}

/** Reads an amount of at most four decimals, rounding off what binary floating point may have shifted. */
export function readAmount(text: string): { value: string; isRounded: boolean } | undefined {
  const exact = parseAmount(text)
  if (exact !== undefined) return { value: exact, isRounded: false }
  if (!NUMBER.test(text)) return undefined
  const number = new Big(text)
  const near = number.round(4)
  if (number.minus(near).abs().gt(NOISE)) return undefined
  const value = parseAmount(near.eq(0) ? '0' : near.toFixed())
  return value === undefined ? undefined : { value, isRounded: true }
}

/** Any value but a clean text becomes JSON, so that it never equals a documented value. */
function readWord(value: unknown): string {
  if (value === undefined || value === null || value === '') return ''
  if (typeof value === 'string' && isId(value)) return value
  return cut(formatEntry(value))
}

function formatEntry(entry: unknown): string {
  return stringify(toStorable(maskCardData(entry))) ?? 'null'
}

function shortenEntry(entry: unknown): string {
  const members = isObject(entry) ? entry : {}
  const present = MEMBERS.filter((name) => Object.hasOwn(members, name))
  const known = present.map((name) => [name, cut(formatEntry(members[name]))])
  return JSON.stringify({ ...Object.fromEntries(known), shortened: true })
}

function cut(text: string): string {
  return text.slice(0, MAX_ID).toWellFormed()
}

function readMember(entry: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(entry, name) ? entry[name] : undefined
}
