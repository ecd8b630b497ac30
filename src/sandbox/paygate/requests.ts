import { LosslessNumber } from 'lossless-json'
import { z } from 'zod'

const MISSING = 'is missing'

/** Required: null and an empty text are as good as nothing. */
const orMissing = (otherwise: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined || input === null || input === '' ? MISSING : otherwise,
})
const text = z.string(orMissing('must be a string')).refine((given) => given !== '', MISSING)
const number = z.instanceof(LosslessNumber, orMissing('must be a number'))

/** QUERY_PT (specification 4.3.1), by names without prefix. */
export const queryRequest = z.object({
  MerchantCode: text,
  TransactionID: text,
  Version: text,
  SecureHash: text,
})

/** REFUND (specification 4.3.2); the amount is a number, the receiver may be left out. */
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

export type ReadRequest<T> =
  | { kind: 'read'; request: T }
  | { kind: 'missing'; name: string }
  | { kind: 'wrongType'; name: string; must: string }

/**
 * Reads the parameters of a command, by names without prefix. A missing one is told before one of the
 * wrong type, both in the order of the specification's tables.
 */
export function readRequest<T>(
  schema: z.ZodType<T>,
  fields: Readonly<Record<string, unknown>>,
): ReadRequest<T> {
  const { data, error } = schema.safeParse(fields)
  if (error === undefined) return { kind: 'read', request: data }
  const issue = error.issues.find(({ message }) => message === MISSING) ?? error.issues[0]
  const name = String(issue?.path[0])
  if (issue === undefined || issue.message === MISSING) return { kind: 'missing', name }
  return { kind: 'wrongType', name, must: issue.message }
}
