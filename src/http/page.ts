import { z } from '@hono/zod-openapi'
import { DomainError } from '../errors.ts'

/** The place of a row in a list ordered by time, then id: rows inserted meanwhile move nothing. */
export type Position = { time: string; id: string; merchantCode: string }

export type Page<T> = { data: T[]; nextCursor: string | null }

/** What no text column can hold. */
const hasNoNul = (text: string) => !text.includes('\0')

const POSITION = z.tuple([
  z
    .string()
    .regex(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?\+00$/)
    .refine(isTime),
  z.string().min(1).refine(hasNoNul),
  z.string().refine(hasNoNul),
])

/** The pattern lets the 31st of February through; the database would not. */
function isTime(text: string): boolean {
  const iso = text.replace(' ', 'T').replace('+00', 'Z')
  return !iso.startsWith('0000') && z.iso.datetime().safeParse(iso).success
}

/** Query parameters of every list. */
export const pageParameters = {
  limit: z
    .string()
    .regex(/^\d{1,3}$/, 'must be a whole number from 1 to 200')
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 200, 'must be a whole number from 1 to 200')
    .optional()
    .openapi({
      type: 'integer',
      minimum: 1,
      maximum: 200,
      default: 50,
      description: 'How many at most',
      example: 50,
    }),
  cursor: z.string().max(1_000).optional().openapi({
    description: '`nextCursor` of the page before; opaque, and only for the same list',
  }),
}

export const DEFAULT_LIMIT = 50

/** A cursor is opaque to its user: the position of the last row it saw. */
function writeCursor({ time, id, merchantCode }: Position): string {
  return Buffer.from(JSON.stringify([time, id, merchantCode])).toString('base64url')
}

/**
 * @param idForm what the ids of this list look like, where a database type asks for a form
 * @throws DomainError `invalid_request` for anything that `writeCursor` did not write, and for another list's
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
    // Decoding passes over what is not Base64: only the very text that was given out is taken back.
    if (writeCursor(position) !== cursor) throw new Error('not the text that was given out')
    return position
  } catch {
    throw new DomainError('invalid_request', 'cursor: is not one this service gave', {
      errors: [{ path: 'cursor', message: 'is not one this service gave' }],
    })
  }
}

/** Cuts a page out of rows that may be more than `limit`: what is beyond only says that there is more. */
export function cutPage<Row, T>(
  rows: readonly Row[],
  limit: number,
  locate: (row: Row) => Position,
  show: (row: Row) => T,
): Page<T> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const nextCursor = rows.length > limit && last !== undefined ? writeCursor(locate(last)) : null
  return { data: shown.map(show), nextCursor }
}

/** A list's answer, for a route's declaration. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.strictObject({
    data: z.array(item),
    nextCursor: z.string().nullable().openapi({
      description: 'Leads to the next page as `cursor`; null on the last one',
    }),
  })
}
