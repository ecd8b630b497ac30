import { z } from '@hono/zod-openapi'
import { isLosslessNumber, parse } from 'lossless-json'
import { DomainError } from '../../errors.ts'
import { compareAmounts, parseAmount } from '../../money.ts'
import { Receiver } from '../receiver.ts'

const MAX_PAIRS = 20
/** Of the pairs as JSON in UTF-8. */
const MAX_BYTES = 2_048

/** What the caller stores with a refund: string pairs that mean nothing to this service. */
export const Metadata = z
  .record(
    z.string().min(1, 'must not have an empty name').refine(isStorable, 'holds control characters'),
    z
      .string()
      .refine((text) => isStorable(text.replace(/[\t\r\n]/g, '')), 'holds control characters'),
  )
  .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, `must have at most ${MAX_PAIRS} pairs`)
  .refine(
    (pairs) => Buffer.byteLength(JSON.stringify(pairs)) <= MAX_BYTES,
    `must be at most ${MAX_BYTES} bytes of JSON`,
  )

function isStorable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}

const NO_AMOUNT = 'must be a decimal above zero with at most 18 digits before and 4 after the point'

/** The reason given for a refund or a decision: printable text that the database can store. */
export const Reason = z
  .string()
  .trim()
  .max(500, 'must be at most 500 characters')
  .refine((text) => !/\p{Cc}/u.test(text) && text.isWellFormed(), 'holds control characters')

/** The id of a refund in a path. */
export const RefundId = z.string().openapi({
  description: 'The `id` of the refund; an id of another format is not found',
  example: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
})

/** A query parameter of refund requests. */
export const DryRunParameter = z.enum(['true', 'false']).optional().openapi({
  type: 'boolean',
  description: 'Returns what would be sent; stores and sends nothing. Needs no `Idempotency-Key`.',
})

/** The headers of refund requests. */
export const IdempotencyHeaders = z.object({
  'idempotency-key': z.string().optional().openapi({
    description:
      'A unique string of your own for each refund, e.g. `order-DH1-return-1`; required unless `dryRun=true`',
    maxLength: 257,
  }),
})

/** The body of a refund request. */
export const RefundRequest = z
  .strictObject({
    amount: z.union([z.string(), z.number()], NO_AMOUNT).optional().openapi({
      description: 'Decimal string or number. Defaults to the full refundable amount.',
      example: '10000',
    }),
    receiver: Receiver.optional().openapi({
      description: 'Required if the payment was made by QR',
    }),
    reason: Reason.optional().openapi({ example: 'returned goods' }),
    onBehalfOf: z
      .string()
      .trim()
      .normalize('NFC')
      .min(1, 'must not be empty')
      .max(140, 'must be at most 140 characters')
      .refine((name) => !/\p{Cc}/u.test(name) && name.isWellFormed(), 'holds control characters')
      .optional()
      .openapi({
        description:
          'The name or id of the person for whom you ask: shown, and not counted as a second person for the approval',
        example: 'Tran Thi B',
      }),
    metadata: Metadata.optional().openapi({
      description:
        'Up to 20 pairs of strings, at most 2 KB as JSON: kept and shown with the refund, never sent to the gateway',
      example: { returnId: 'R-17' },
    }),
  })
  .openapi('RefundRequest', {
    example: {
      amount: '10000',
      receiver: { accountName: 'NGUYEN VAN A', accountNumber: '123456789', swiftCode: 'ASCBVNVX' },
      reason: 'returned goods',
    },
  })

/**
 * Reads the amount exactly as it is written in the body, without parsing JSON numbers as binary floating point.
 * @returns a decimal string, or undefined when the body has no amount
 * @throws DomainError `invalid_request`, or `invalid_json` when a member occurs twice
 */
export function readExactAmount(body: string): string | undefined {
  const member = readMember(body, 'amount')
  if (member === undefined) return undefined
  const amount =
    typeof member === 'string'
      ? parseRefundAmount(member)
      : isLosslessNumber(member)
        ? requirePositive(parseAmount(member.value))
        : undefined
  if (amount !== undefined) return amount
  throw new DomainError('invalid_request', `amount: ${NO_AMOUNT}`, {
    errors: [{ path: 'amount', message: NO_AMOUNT }],
  })
}

/**
 * Parses an amount that was written as text: a decimal above zero, without an exponent.
 * @returns undefined for anything else
 */
export function parseRefundAmount(text: string): string | undefined {
  return /e/i.test(text) ? undefined : requirePositive(parseAmount(text))
}

function requirePositive(amount: string | undefined): string | undefined {
  return amount !== undefined && compareAmounts(amount, '0') > 0 ? amount : undefined
}

function readMember(body: string, name: string): unknown {
  try {
    const value = parse(body)
    return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
      ? Object.entries(value).find(([key]) => key === name)?.[1]
      : undefined
  } catch {
    throw new DomainError('invalid_json', 'The body contains the same member twice')
  }
}
