import { isLosslessNumber, isNumber, LosslessNumber, parse, stringify } from 'lossless-json'
import { z } from 'zod'
import { computeSecureHash, type WireParams } from '../gateway/signature.ts'

export type Fields = Readonly<Record<string, unknown>>

export function isMembers(value: unknown): value is Fields {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}

/**
 * Reads a gateway request as JSON or as a form (specification 4.3). Numbers keep their text. A form has no types: its
 * amount is a number if it looks like one.
 * @returns `undefined` if the body is neither a JSON object nor a form
 */
export function readParams(
  contentType: string | undefined,
  body: string,
  prefix: string,
): WireParams | undefined {
  if (isForm(contentType)) return readForm(body, prefix)
  try {
    const value = parse(body)
    return isMembers(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function isForm(contentType: string | undefined): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')
}

function readForm(body: string, prefix: string): WireParams {
  const form = new URLSearchParams(body)
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => {
      const values = form.getAll(name)
      const text = values.length === 1 ? form.get(name) : values
      const isAmount = name === `${prefix}_Amount` && typeof text === 'string' && isNumber(text)
      return [name, isAmount ? new LosslessNumber(text) : text]
    }),
  )
}

export function readFields(params: WireParams, prefix: string): Fields {
  const start = `${prefix}_`
  return Object.fromEntries(
    Object.entries(params)
      .filter(([name]) => name.startsWith(start))
      .map(([name, value]) => [name.slice(start.length), value]),
  )
}

const MISSING = 'is missing'

/** For required parameters: null and the empty text count as missing. */
const orMissing = (otherwise: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined || input === null || input === '' ? MISSING : otherwise,
})
const text = z.string(orMissing('must be a string')).refine((given) => given !== '', MISSING)

/** The parameters of QUERY_PT (specification 4.3.1). */
export const queryRequest = z.object({
  MerchantCode: text,
  TransactionID: text,
  Version: text,
  SecureHash: text,
})

/** The parameters of REFUND (specification 4.3.2). */
export const refundRequest = z.object({
  MerchantCode: text,
  RequestID: text,
  PaymentID: text,
  Amount: z.instanceof(LosslessNumber, orMissing('must be a number')),
  Receiver: z.string('must be a string').optional(),
  Version: text,
  SecureHash: text,
})

export type QueryRequest = z.output<typeof queryRequest>
export type RefundRequest = z.output<typeof refundRequest>

/** Reports missing parameters before those of the wrong type, both in the order of the specification's tables. */
export function parseRequest<T>(
  schema: z.ZodType<T>,
  fields: Fields,
  prefix: string,
): { request: T } | { refusal: PaygateAnswer } {
  const { data, error } = schema.safeParse(fields)
  if (error === undefined) return { request: data }
  const issue = error.issues.find(({ message }) => message === MISSING) ?? error.issues[0]
  const name = `${prefix}_${String(issue?.path[0])}`
  if (issue === undefined || issue.message === MISSING) {
    return { refusal: refuse('missingParameter', name) }
  }
  return { refusal: refuse('wrongType', `${name} ${issue.message}`) }
}

export type PaygateAnswer = { code: number; message: string; data?: unknown }

/**
 * Gateways of this family use the codes 1 to 37. Those from 200 on are the sandbox's own, because the specification
 * has no table of codes (section 7).
 */
const ANSWERS = {
  success: { code: 0, message: 'Success' },
  failed: { code: 1, message: 'Failed' },
  unknownMerchant: { code: 30, message: 'Integration is not approved: unknown merchant code' },
  unknownTransaction: { code: 32, message: 'Invalid transaction id: no such transaction' },
  invalidAmount: { code: 33, message: 'Invalid amount' },
  tooManyDecimals: { code: 37, message: 'Invalid decimals: at most 4 are allowed' },
  unreadable: { code: 200, message: 'The body is neither a JSON object nor a form' },
  unknownCommand: { code: 201, message: 'Unknown command' },
  missingParameter: { code: 202, message: 'A required parameter is missing' },
  wrongType: { code: 202, message: 'A parameter has the wrong type' },
  unsupportedVersion: { code: 203, message: 'Unsupported version' },
  badSignature: { code: 204, message: 'Invalid signature' },
  unknownPayment: { code: 211, message: 'No such payment' },
  notRefundable: { code: 212, message: 'The payment is not successful' },
  exceedsBalance: { code: 213, message: 'The amount exceeds the remaining balance of the payment' },
  badReceiver: { code: 214, message: 'The beneficiary information is missing or invalid' },
  duplicateRequest: { code: 215, message: 'The request id was used before' },
} satisfies Record<string, PaygateAnswer>

export function succeed(data: unknown): PaygateAnswer {
  return { ...ANSWERS.success, data }
}

export function refuse(name: keyof typeof ANSWERS, detail?: string): PaygateAnswer {
  const { code, message } = ANSWERS[name]
  return { code, message: detail === undefined ? message : `${message}: ${detail}` }
}

export function answerWithCode(code: number): PaygateAnswer {
  return Object.values(ANSWERS).find((one) => one.code === code) ?? { ...ANSWERS.failed, code }
}

/** Writes an answer (specification 4.3.1, 4.3.2). A refusal has an empty `ResponseData` of the command's type. */
export function writeAnswer(
  { code, data, message }: PaygateAnswer,
  { command, prefix }: { command: string; prefix: string },
): string {
  const empty = command === 'QUERY_PT' ? [] : {}
  const answer = { ResponseCode: code, ResponseData: data ?? empty, ResponseMsg: message }
  return writeJson(writeParams(answer, prefix))
}

/** Writes the body of a notification with its `SecureHash` (specification 5.2, 6). */
export function writeSigned(
  fields: Fields,
  secret: string,
  rule: { prefix: string; exclude: readonly string[] },
): string {
  const params = writeParams(fields, rule.prefix)
  const hash = computeSecureHash(params, secret, rule)
  return writeJson({ ...params, [`${rule.prefix}_SecureHash`]: hash })
}

function writeParams(fields: Fields, prefix: string): WireParams {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`${prefix}_${name}`, value]),
  )
}

export const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }

export function writeJson(value: unknown): string {
  return stringify(value) ?? 'null'
}

const receiver = z.object({
  accountName: z.string().min(1),
  accountNumber: z.string().min(1),
  swiftCode: z.string().min(1),
})

/** Reads `svc_Receiver`, a JSON object in padded Base64 (specification 4.3.2). @returns `undefined` if it is neither */
export function readReceiver(given: string): z.output<typeof receiver> | undefined {
  const bytes = Buffer.from(given, 'base64')
  if (bytes.toString('base64') !== given) return undefined
  try {
    return receiver.safeParse(JSON.parse(bytes.toString('utf8'))).data
  } catch {
    return undefined
  }
}

export function maskReceiver(given: unknown): unknown {
  const known = typeof given === 'string' ? readReceiver(given) : undefined
  if (known === undefined) return '(unreadable)'
  return { ...known, accountNumber: `•••• ${known.accountNumber.slice(-4)}` }
}
