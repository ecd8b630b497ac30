import { z } from '@hono/zod-openapi'
import { parseAmount } from '../money.ts'

/** An identifier assigned by the gateway: 1 to 128 printable characters. */
export const Id = z
  .string()
  .max(128, 'is longer than 128 characters')
  .refine((id) => id.trim() !== '', 'is empty')
  .refine((id) => !/\p{Cc}/u.test(id) && id.isWellFormed(), 'holds control characters')
  .openapi({ minLength: 1, description: 'An id that the gateway assigned, or one it knows' })

/** Returns whether a text is a UUID (RFC 9562). The database accepts nothing else for ids assigned by this service. */
export function isUuid(id: string): boolean {
  return z.guid().safeParse(id).success
}

export const Amount = z.string().openapi({ pattern: '^\\d+(\\.\\d+)?$', example: '10000.50' })

export const Time = z.string().openapi({ format: 'date-time', example: '2026-11-21T09:00:00.000Z' })

export const OrderId = z
  .string()
  .nullable()
  .openapi({ description: 'From the notification; null if it had none' })
export const MerchantTxnId = z
  .string()
  .nullable()
  .openapi({ description: 'Your own transaction id, from the notification; null if it had none' })

export const MerchantCode = z.string().optional().openapi({
  description: 'The merchant account, e.g. `UFLIYL`; for keys that hold several',
})

const INVALID_TIME = 'must be a time like 2026-11-21T09:00:00Z'

/** Returns whether Postgres accepts a time. ISO 8601 allows more, such as a year 0 and offsets beyond 15 hours. */
export function isTime(time: string): boolean {
  if (/^0000|\.\d{10}|[+-](1[6-9]|2\d):?\d\d$/.test(time)) return false
  return z.iso.datetime({ offset: true }).safeParse(time).success
}

/** A time as a query parameter. It stays text, because Postgres keeps more digits than `Date`. */
export const TimeParameter = z
  .string()
  // In a query string, an unencoded plus sign means a space.
  .transform((time) => time.replace(/ (?=\d\d:?\d\d$)/, '+'))
  .refine(isTime, INVALID_TIME)
  .optional()
  .openapi({
    type: 'string',
    format: 'date-time',
    description:
      'ISO 8601 with an offset, e.g. `2026-11-21T09:00:00Z`; `from` is inclusive, `to` is exclusive',
  })

/** A day. Both JavaScript and Postgres write its beginning and end with a four-digit year. */
export const Day = z.iso.date().refine((day) => day >= '0001-01-01' && day < '9999-12-31')

const INVALID_AMOUNT = 'must be a decimal like 10000.50'

export const AmountParameter = z
  .string()
  .refine((text) => parseAmount(text) !== undefined, INVALID_AMOUNT)
  .optional()
  .openapi({
    description: 'Compared by value: `10000.5` also finds `10000.50`',
    example: '10000.50',
  })

/** @param unit of the number, for the message */
export function integerParameter(
  unit: string,
  [minimum, maximum]: [number, number],
  shown: { description: string; default?: number; example?: number },
) {
  const message = `must be ${unit} from ${minimum} to ${maximum}`
  return z
    .string()
    .regex(/^\d{1,3}$/, message)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, message)
    .optional()
    .openapi({ type: 'integer', minimum, maximum, ...shown })
}

/** How long to hold a request open (s). */
export const WaitParameter = integerParameter('whole seconds', [0, 60], {
  description: 'Holds the request open for up to this many seconds, until the condition is met',
})
