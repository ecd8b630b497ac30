import { OpenAPIHono, z } from '@hono/zod-openapi'
import { createMiddleware } from 'hono/factory'
import { DomainError } from '../errors.ts'
import type { AppEnv } from './app-env.ts'
import { type HeaderName, referToHeaders } from './headers.ts'

/** A router whose routes declare their input and answers; input that does not fit is refused by field. */
export function createRouter() {
  return new OpenAPIHono<AppEnv>({
    defaultHook: (result) => {
      if (result.success) return
      const errors = result.error.issues.flatMap((issue) => {
        const message = explainIssue(issue)
        const names = issue.code === 'unrecognized_keys' ? issue.keys : [undefined]
        return names.map((name) => ({
          path: [...issue.path, ...(name === undefined ? [] : [name])].join('.') || 'body',
          message: name === undefined ? message : 'is not known here',
        }))
      })
      const named = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
      throw new DomainError('invalid_request', named, { errors })
    },
  })
}

/** What does not fit, in words that follow its name; those of the library stand for themselves alone. */
function explainIssue(issue: z.core.$ZodIssue): string {
  // A schema's own words say more than the kind of its trouble.
  if (!issue.message.startsWith('Invalid ')) return issue.message
  if (issue.code === 'invalid_type') {
    const isMissing = issue.message.endsWith('received undefined')
    return isMissing ? 'is missing' : `must be of type ${issue.expected}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  return issue.message
}

/**
 * Refuses an address with escapes that are no text. The framework would take them for the text itself,
 * and `%FF` would name the same thing as `%25FF`. A host that no address can have (`shop.1`) is found
 * out about here, too: the framework parses it only when somebody asks for the whole request.
 */
export const requireReadableAddress = createMiddleware<AppEnv>(async (c, next) => {
  if (!URL.canParse(c.req.url)) throw new DomainError('invalid_address', 'Host: is not a host')
  const [path = '', query = ''] = c.req.url.split(/\?(.*)/s)
  const unreadable = isReadable(path) ? query.split('&').find((part) => !isReadable(part)) : path
  if (unreadable === undefined) return await next()
  const named = unreadable === path ? 'path' : (unreadable.split('=')[0] ?? '')
  const message = 'holds escapes that are not UTF-8 text'
  throw new DomainError('invalid_request', `${named}: ${message}`, {
    errors: [{ path: named, message }],
  })
})

function isReadable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** A JSON answer with its own headers, for a route's declaration. */
export function answers<T extends z.ZodType>(
  description: string,
  schema: T,
  ...headers: HeaderName[]
) {
  return {
    description,
    headers: referToHeaders(headers),
    content: { 'application/json': { schema } },
  }
}

/** The same for an answer that is written as text, because `c.json` would write its numbers anew. */
export function answersText(description: string, schema: z.ZodType): { description: string } {
  return answers(description, schema)
}

/** Server-sent events whose data is JSON, for a route's declaration. */
export function answersStream(description: string, schema: z.ZodType): { description: string } {
  const declared = { description, content: { 'text/event-stream': { schema } } }
  return declared
}

/** An answer without a body. */
export function answersNothing(description: string, ...headers: HeaderName[]) {
  return { description, headers: referToHeaders(headers) }
}

/** An identifier of the gateway's: 1 to 128 printable characters. */
export const Id = z
  .string()
  .max(128, 'is longer than 128 characters')
  .refine((id) => id.trim() !== '', 'is empty')
  .refine((id) => !/\p{Cc}/u.test(id) && id.isWellFormed(), 'holds control characters')
  .openapi({ minLength: 1, description: "An id of the gateway's, or one as it knows it" })

/** Whether a text has the form of the ids that this service gives (RFC 9562); the database takes no other. */
export function isOwnId(id: string): boolean {
  return z.guid().safeParse(id).success
}

/** A decimal string, e.g. `"20000000"` or `"10000.50"`. */
export const Amount = z.string().openapi({ pattern: '^\\d+(\\.\\d+)?$', example: '10000.50' })

export const Time = z.string().openapi({ format: 'date-time', example: '2026-11-21T09:00:00.000Z' })

/** Which account is meant, as a parameter or a member of a request. */
export const MerchantCode = z.string().optional().openapi({
  description: 'The merchant account, e.g. `UFLIYL`, where the key holds several',
})

const NO_TIME = 'must be a time like 2026-11-21T09:00:00Z'

/** ISO 8601 also knows a year 0, offsets beyond 15 hours and any number of digits; `timestamptz` does not. */
function isPostgresTime(time: string): boolean {
  return !/^0000|\.\d{10}|[+-](1[6-9]|2\d):?\d\d$/.test(time)
}

/** A point in time as a query parameter; kept as text, because Postgres reads more digits than `Date`. */
export const TimeParameter = z.iso
  .datetime({ offset: true, error: NO_TIME })
  .refine(isPostgresTime, NO_TIME)
  .optional()
  .openapi({
    type: 'string',
    format: 'date-time',
    description:
      'ISO 8601 with its offset, e.g. `2026-11-21T09:00:00Z`; `from` is included, `to` is not',
  })

/** Seconds to hold a request open, at most 60. */
export const WaitParameter = z
  .string()
  .regex(/^\d{1,3}$/, 'must be whole seconds from 0 to 60')
  .transform(Number)
  .refine((seconds) => seconds <= 60, 'must be whole seconds from 0 to 60')
  .optional()
  .openapi({
    type: 'integer',
    minimum: 0,
    maximum: 60,
    description:
      'Holds the request open for so many seconds at most, until it has what is waited for',
  })
