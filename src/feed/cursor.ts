import { z } from '@hono/zod-openapi'
import { DomainError } from '../errors.ts'

const NOT_ISSUED = 'is not a cursor of this feed'

/** A position in the feed, as a query parameter or a header. */
export const Cursor = z
  .string()
  .regex(/^\d{1,18}$/, NOT_ISSUED)
  .transform(Number)
  .optional()
  .openapi({
    type: 'string',
    pattern: '^\\d{1,18}$',
    description:
      'The `id` of the last event read, or `nextCursor`; without it the oldest event kept comes first',
  })

/** Where to begin, as a query parameter: a cursor, or `latest`. */
export const After = z
  .union([z.literal('latest'), Cursor], 'is neither a cursor of this feed nor `latest`')
  .optional()
  .openapi({
    type: 'string',
    pattern: '^(latest|\\d{1,18})$',
    description:
      'The `id` of the last event read, or `nextCursor`; without it the oldest event kept comes first, and with `latest` only events from now on',
  })

/**
 * Makes the refusal of a cursor that this feed never issued.
 * @param path the request field that held it
 * @param hint what to do instead
 */
export function refuseCursor(path: string, hint: string): DomainError {
  const message = `${NOT_ISSUED}${hint}`
  return new DomainError('invalid_request', `${path}: ${message}`, { errors: [{ path, message }] })
}
