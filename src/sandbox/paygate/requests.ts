import { LosslessNumber } from 'lossless-json'
import { z } from 'zod'
import type { PaygateAnswer } from '../types.ts'

const MISSING = 'is missing'

/** For required parameters: null and the empty string count as missing. */
const orMissing = (otherwise: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined || input === null || input === '' ? MISSING : otherwise,
})
const text = z.string(orMissing('must be a string')).refine((given) => given !== '', MISSING)
const number = z.instanceof(LosslessNumber, orMissing('must be a number'))

/** The parameters of QUERY_PT (specification 4.3.1), by names without prefix. */
export const queryRequest = z.object({
  MerchantCode: text,
  TransactionID: text,
  Version: text,
  SecureHash: text,
})

/** The parameters of REFUND (specification 4.3.2). The amount is a number, the receiver optional. */
export const refundRequest = z.object({
  MerchantCode: text,
  RequestID: text,
  PaymentID: text,
  Amount: number,
  Receiver: z.string('must be a string').optional(),
  Version: text,
  SecureHash: text,
})

export type QueryRequest = z.output<typeof queryRequest>
export type RefundRequest = z.output<typeof refundRequest>

export type ParsedRequest<T> =
  | { kind: 'valid'; request: T }
  | { kind: 'missing'; name: string }
  | { kind: 'wrongType'; name: string; must: string }

/**
 * Parses the parameters of a command, by names without prefix. Missing parameters are reported before
 * those of the wrong type, both in the order of the specification's tables.
 */
export function parseRequest<T>(
  schema: z.ZodType<T>,
  fields: Readonly<Record<string, unknown>>,
): ParsedRequest<T> {
  const { data, error } = schema.safeParse(fields)
  if (error === undefined) return { kind: 'valid', request: data }
  const issue = error.issues.find(({ message }) => message === MISSING) ?? error.issues[0]
  const name = String(issue?.path[0])
  if (issue === undefined || issue.message === MISSING) return { kind: 'missing', name }
  return { kind: 'wrongType', name, must: issue.message }
}

/**
 * Answers to QUERY_PT and REFUND by name. Codes 1 to 37 are used by gateways of this family; codes from
 * 200 on are the sandbox's own, because the specification has no table of codes (section 7).
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
} satisfies Record<string, { code: number; message: string }>

export type AnswerName = keyof typeof ANSWERS

/** Returns a successful answer with `data`. */
export function succeed(data: unknown): PaygateAnswer {
  return { ...ANSWERS.success, data }
}

/** Returns a refusal by name; `detail` is appended to its message. */
export function refuse(name: AnswerName, detail?: string): PaygateAnswer {
  const { code, message } = ANSWERS[name]
  return { code, message: detail === undefined ? message : `${message}: ${detail}` }
}

/** Returns a refusal with any code, for faults. Codes that are not listed get the generic message. */
export function refuseWithCode(code: number): PaygateAnswer {
  const known = Object.values(ANSWERS).find((answer) => answer.code === code)
  return { code, message: known?.message ?? ANSWERS.failed.message }
}
