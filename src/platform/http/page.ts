import { z } from '@hono/zod-openapi'
import { DomainError } from '../../errors.ts'

/** The position of a row in a list ordered by time, then id; rows inserted meanwhile do not shift it. */
export type Position = { time: string; id: string; merchantCode: string }

export type Page<T> = { data: T[]; nextCursor: string | null }

/** A text column cannot hold NUL. */
const hasNoNul = (text: string) => !text.includes('\0')

const POSITION = z.tuple([
  z
    .string()
    .regex(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/)
    .refine(isTime),
  z.string().min(1).refine(hasNoNul),
  z.string().refine(hasNoNul),
])

/** The pattern accepts the 31st of February; the database would not. */
function isTime(text: string): boolean {
  const iso = text.replace(' ', 'T').replace('+00', 'Z')
  return !iso.startsWith('0000') && z.iso.datetime().safeParse(iso).success
}

const INVALID_LIMIT = 'must be a whole number from 1 to 200'

/** Query parameters of every list. */
export const pageParameters = {
  limit: z
    .string()
    .regex(/^\d{1,3}$/, INVALID_LIMIT)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 200, INVALID_LIMIT)
    .optional()
    .openapi({
      type: 'integer',
      minimum: 1,
      maximum: 200,
      default: 50,
      description: 'The maximum number of rows on a page',
      example: 50,
    }),
  cursor: z.string().max(1_000).optional().openapi({
    description: '`nextCursor` of the previous page; opaque, and valid only for the same list',
  }),
}

export const DEFAULT_LIMIT = 50

/** Encodes the position of the last row that the client received; opaque to the client. */
function writeCursor({ time, id, merchantCode }: Position): string {
  return Buffer.from(JSON.stringify([time, id, merchantCode])).toString('base64url')
}

/**
 * Decodes a cursor.
 * @param idForm the form of this list's ids, where the database type requires one
 * @throws DomainError `invalid_request` for anything that `writeCursor` did not write, and for another
 *   list's cursor
 */
export function readCursor(
  cursor: string | undefined,
  idForm: z.ZodType<string> = z.string(),
): Position | undefined {
  if (cursor === undefined) return undefined
  try {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [time, id, merchantCode] = POSITION.parse(JSON.parse(text))
    const position = { time, id: idForm.parse(id), merchantCode }
    // Decoding skips characters that are not Base64: accept only the exact text that was issued.
    if (writeCursor(position) !== cursor) throw new Error('not the text that was issued')
    return position
  } catch {
    const message = 'is not a cursor of this list'
    throw new DomainError('invalid_request', `cursor: ${message}`, {
      errors: [{ path: 'cursor', message }],
    })
  }
}

/**
 * Cuts a page out of rows that may be more than `limit`: further rows only mean that there is a next page. Reading may
 * also have stopped before the page was full; then the next one begins behind the last row that was examined.
 */
export function cutPage<Row, T>(
  { rows, stoppedAt }: { rows: readonly Row[]; stoppedAt?: Row | undefined },
  limit: number,
  locate: (row: Row) => Position,
  show: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : stoppedAt
  const nextCursor = last === undefined ? null : writeCursor(locate(last))
  return { data: shown.map(show), nextCursor }
}

/** Describes a page of a list, for a route's declaration. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.strictObject({
    data: z.array(item),
    nextCursor: z.string().nullable().openapi({
      description:
        'Pass it as `cursor` to get the next page; null on the last page. With a filter that leaves much out, a page may be short or empty although it is not null',
    }),
  })
}
