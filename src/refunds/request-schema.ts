import { z } from '@hono/zod-openapi'
import { createMiddleware } from 'hono/factory'
import { isLosslessNumber, parse } from 'lossless-json'
import type { withScope } from '../access/authenticate.ts'
import { DomainError, invalidField } from '../errors.ts'
import { isPrintable } from '../gateway/storable.ts'
import type { HttpEnv } from '../http/problems.ts'
import { compareAmounts, parseAmount } from '../money.ts'
import { NOT_PRINTABLE, Receiver } from './receiver.ts'

const MAX_PAIRS = 20
/** The size of all pairs together, as JSON in UTF-8. */
const MAX_BYTES = 2_048

/** String pairs that the caller stores with a refund. They mean nothing to this service. */
const Metadata = z
  .record(
    z.string().min(1, 'must not have an empty name').refine(isPrintable, NOT_PRINTABLE),
    z.string().refine((text) => isPrintable(text.replace(/[\t\r\n]/g, '')), NOT_PRINTABLE),
  )
  .refine((pairs) => Object.keys(pairs).length <= MAX_PAIRS, `must have at most ${MAX_PAIRS} pairs`)
  .refine(
    (pairs) => Buffer.byteLength(JSON.stringify(pairs)) <= MAX_BYTES,
    `must be at most ${MAX_BYTES} bytes of JSON`,
  )

const NO_AMOUNT = 'must be a decimal above zero with at most 18 digits before and 4 after the point'

/** The reason for a refund or a decision, as printable text that the database can store. */
export const Reason = z
  .string()
  .trim()
  .max(500, 'must be at most 500 characters')
  .refine(isPrintable, NOT_PRINTABLE)

export const RefundId = z.string().openapi({
  description: 'The `id` of the refund; an id of another format is not found',
  example: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11',
})

export const DryRunParameter = z.enum(['true', 'false']).optional().openapi({
  type: 'boolean',
  description: 'Returns what would be sent; stores and sends nothing. Needs no `Idempotency-Key`.',
})

export const IdempotencyHeaders = z.object({
  'idempotency-key': z.string().optional().openapi({
    description:
      'A unique string of your own for each refund, e.g. `order-DH1-return-1`; required unless `dryRun=true`',
    maxLength: 257,
  }),
})

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
      .refine(isPrintable, NOT_PRINTABLE)
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
 * Reads the amount as written: a JSON number must not become binary floating point.
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
  throw invalidField('amount', NO_AMOUNT)
}

/** Refuses the one name that parsing drops without an error. @throws DomainError `invalid_request` */
export function requireKept(body: string): void {
  const metadata = readMember(body, 'metadata')
  const isObject = typeof metadata === 'object' && metadata !== null
  if (!isObject || !Object.hasOwn(metadata, '__proto__')) return
  throw invalidField('metadata.__proto__', 'must have another name')
}

/** Parses an amount that was written as text: a decimal above zero, without an exponent. */
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

export type RequestParams = {
  /** A decimal string; undefined requests all that is left. */
  amount: string | undefined
  receiver: Receiver | undefined
  reason: string | undefined
  onBehalfOf?: string | undefined
  metadata?: Readonly<Record<string, string>> | undefined
  /**
   * The version that the caller saw, from `formatTransactionVersion` or, for a surplus refund, from `describeSurplus`.
   * The refund is refused if anything visible has changed since. An idempotency key does not cover it.
   */
  expectedVersion?: string | undefined
}

/** A payment, or what was paid beyond one success for the order of a transaction. */
export type RefundSubject = { paymentId: string } | { transactionId: string }

export type RefundParams = RequestParams & RefundSubject

/** A dry run writes nothing, so its refusal must not be recorded as the refusal of a write. */
const markDryRun = createMiddleware<HttpEnv>(async (c, next) => {
  if (c.req.query('dryRun') === 'true') c.set('isDryRun', true)
  await next()
})

/** The scope is checked first, so that an attempt without it is recorded. Other routes ignore `dryRun`. */
export function withDryRun({ middleware, security }: ReturnType<typeof withScope>) {
  return { middleware: [middleware, markDryRun], security }
}
