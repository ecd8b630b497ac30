import { isLosslessNumber, type LosslessNumber, parse } from 'lossless-json'
import { z } from 'zod'
import { parseAmount } from '../money.ts'

/** A payment as the gateway lists it (specification 2.4). */
export type ListedPayment = {
  id: string
  /** As it came: SUCCESS, FAILED, PROCESSING, or something no document names. */
  status: string
  amount: string
  refundedAmount: string
  paymentMethod: string
}

export type Answer<T> =
  | { kind: 'answered'; value: T; message: string }
  | { kind: 'rejected'; code: string; message: string }
  /** No answer in the sense of the protocol, whatever it looks like. */
  | { kind: 'none'; reason: string }

const MAX_TEXT = 128

const number = z.custom<LosslessNumber>((value) => isLosslessNumber(value), 'is not a number')

/** A code as one text for one value: neither `0.0` nor `1e-400` may be taken for something it is not. */
export const responseCode = number.transform(({ value }, ctx) => {
  if (/^-?\d{1,9}(?:\.0{1,9})?$/.test(value)) return String(Number(value))
  ctx.addIssue('is not a whole number')
  return z.NEVER
})

const amount = number.transform((value, ctx) => {
  const text = parseAmount(value.value)
  if (text !== undefined) return text
  ctx.addIssue('is not an amount of at most 18 digits before and 4 after the point')
  return z.NEVER
})

const word = z
  .string('is not a string')
  .min(1, 'is empty')
  .max(MAX_TEXT, `is longer than ${MAX_TEXT} characters`)
  .refine(isPrintable, 'holds control characters')

const listedPayment = z.object(
  { id: word, status: word, amount, refundedAmount: amount, paymentMethod: word },
  'is not an object',
)

const listedPayments = z
  .array(listedPayment, 'is not an array')
  .refine((list) => new Set(list.map(({ id }) => id)).size === list.length, 'lists an id twice')

const refundResult = z.object({ transId: word.optional().catch(undefined) }).catch({})

/** No control characters and no half surrogate: neither a log nor a database can hold those. */
export function isPrintable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}

/** Reads the answer to QUERY_PT (specification 4.3.1). A required member that is not as specified is no answer. */
export function readPaymentsAnswer(body: Buffer, prefix: string): Answer<ListedPayment[]> {
  return readAnswer(body, prefix, listedPayments)
}

/**
 * Reads the answer to REFUND (specification 4.3.2). Code 0 accepts the refund, with or without an id.
 * @returns the gateway's id of the refund
 */
export function readRefundAnswer(body: Buffer, prefix: string): Answer<string | undefined> {
  return readAnswer(
    body,
    prefix,
    refundResult.transform(({ transId }) => transId),
  )
}

function readAnswer<T>(body: Buffer, prefix: string, data: z.ZodType<T>): Answer<T> {
  const answer = parseObject(body)
  if (!answer) return { kind: 'none', reason: 'the answer is not a JSON object' }
  const code = responseCode.safeParse(answer[`${prefix}_ResponseCode`])
  if (!code.success) {
    return { kind: 'none', reason: `${prefix}_ResponseCode ${code.error.issues[0]?.message}` }
  }
  const message = shorten(answer[`${prefix}_ResponseMsg`])
  if (code.data !== '0') return { kind: 'rejected', code: code.data, message }
  const parsed = data.safeParse(answer[`${prefix}_ResponseData`])
  if (parsed.success) return { kind: 'answered', value: parsed.data, message }
  const [issue] = parsed.error.issues
  const path = [`${prefix}_ResponseData`, ...(issue?.path ?? [])].join('.')
  return { kind: 'none', reason: `${path} ${issue?.message}` }
}

function parseObject(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value = parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}

/** What the gateway says for people, fit for a log line and a column. */
function shorten(message: unknown): string {
  if (typeof message !== 'string') return ''
  return message
    .toWellFormed()
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, 500)
}
