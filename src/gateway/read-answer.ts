import { isLosslessNumber, type LosslessNumber, parse } from 'lossless-json'
import { z } from 'zod'
import { maskCardText } from '../platform/crypto/masking.ts'
import { formatMembers, formatText } from './format-received.ts'
import { readPayments } from './read-payments.ts'
import { isPrintable, toPrintable } from './storable.ts'
import type { GatewayAnswer, PaymentList, ReadAnswer } from './types.ts'

const MAX_TEXT = 128
const MAX_MESSAGE = 500

const number = z.custom<LosslessNumber>((value) => isLosslessNumber(value), 'is not a number')

/** Parses a code into one text per value: neither `0.0` nor `1e-400` may be mistaken for another code. */
export const responseCode = number.transform(({ value }, ctx) => {
  if (/^-?\d{1,9}(?:\.0{1,9})?$/.test(value)) return String(Number(value))
  ctx.addIssue('is not a whole number')
  return z.NEVER
})

const text = z
  .string('is not a string')
  .min(1, 'is empty')
  .max(MAX_TEXT, `is longer than ${MAX_TEXT} characters`)
  .refine(isPrintable, 'holds control characters')

const paymentList = z
  .array(z.unknown(), 'is not an array')
  .transform((entries) => readPayments(entries))

/** An id is a text; some gateways write it as a number. */
const transId = z.union([text, number.transform(({ value }) => value).pipe(text)])

const refundResult = z.object({ transId: transId.optional().catch(undefined) }).catch({})

/** Reads the answer to QUERY_PT (specification 4.3.1). It is invalid without a code and a list of payments. */
export function readPaymentsAnswer(body: Buffer, prefix: string): ReadAnswer<PaymentList> {
  const members = parseObject(body)
  const answer = judgeAnswer(members, prefix, paymentList)
  if (!members || answer.kind !== 'answered') return { answer, received: formatBody(body, members) }
  const { json, omittedBytes } = answer.value
  const rest = listUnread(members, prefix, answer.message)
  if (!rest && omittedBytes === 0) return { answer, received: undefined }
  const elsewhere = { bytes: Buffer.byteLength(json), omittedBytes }
  return { answer, received: formatMembers(rest ?? {}, elsewhere) }
}

/**
 * Reads the answer to REFUND (specification 4.3.2). Code 0 accepts the refund, with or without an id.
 * @returns the gateway's id of the refund
 */
export function readRefundAnswer(body: Buffer, prefix: string): ReadAnswer<string | undefined> {
  const members = parseObject(body)
  const data = refundResult.transform(({ transId }) => transId)
  return { answer: judgeAnswer(members, prefix, data), received: formatBody(body, members) }
}

/** Formats a response that is no answer, for example that of a proxy. */
export function formatUnread(body: Buffer): string | undefined {
  return formatBody(body, parseObject(body))
}

function formatBody(body: Buffer, members: Record<string, unknown> | undefined) {
  return members ? formatMembers(members) : formatText(body)
}

/** The members whose values are not stored by themselves; undefined for none. */
function listUnread(
  members: Record<string, unknown>,
  prefix: string,
  message: string,
): Record<string, unknown> | undefined {
  let unread: Record<string, unknown> | undefined
  for (const name of Object.keys(members)) {
    if (name === `${prefix}_ResponseCode` || name === `${prefix}_ResponseData`) continue
    if (name === `${prefix}_ResponseMsg` && members[name] === message) continue
    unread ??= {}
    unread[name] = members[name]
  }
  return unread
}

function judgeAnswer<T>(
  answer: Record<string, unknown> | undefined,
  prefix: string,
  data: z.ZodType<T>,
): GatewayAnswer<T> {
  if (!answer) return { kind: 'invalid', reason: 'the answer is not a JSON object' }
  const code = responseCode.safeParse(answer[`${prefix}_ResponseCode`])
  if (!code.success) {
    return { kind: 'invalid', reason: `${prefix}_ResponseCode ${code.error.issues[0]?.message}` }
  }
  const message = maskCardText(toPrintable(answer[`${prefix}_ResponseMsg`])).slice(0, MAX_MESSAGE)
  if (code.data !== '0') return { kind: 'rejected', code: code.data, message }
  const parsed = data.safeParse(answer[`${prefix}_ResponseData`])
  if (parsed.success) return { kind: 'answered', value: parsed.data, message }
  const [issue] = parsed.error.issues
  const path = [`${prefix}_ResponseData`, ...(issue?.path ?? [])].join('.')
  return { kind: 'invalid', reason: `${path} ${issue?.message}` }
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
