import { LosslessNumber } from 'lossless-json'
import { z } from 'zod'

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
