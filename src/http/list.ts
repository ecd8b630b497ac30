import { z } from '@hono/zod-openapi'
import type { Context as HttpContext, TypedResponse } from 'hono'
import { accepts } from 'hono/accepts'
import type { JSONParsed } from 'hono/utils/types'
import { DomainError } from '../errors.ts'
import { referToHeaders } from './describe.ts'
import type { HttpEnv } from './problems.ts'

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
export function readCursor(cursor: string, idForm: z.ZodType<string> = z.string()): Position {
  try {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [time, id, merchantCode] = POSITION.parse(JSON.parse(text))
    const position = { time, id: idForm.parse(id), merchantCode }
    // Decoding skips characters that are not Base64: accept only the exact text that was issued.
    if (writeCursor(position) !== cursor) throw new Error('not the text that was issued')
    return position
  } catch {
    throw refuseCursor()
  }
}

export function refuseCursor(): DomainError {
  const message = 'is not a cursor of this list'
  const errors = [{ path: 'cursor', message }]
  return new DomainError('invalid_request', `cursor: ${message}`, { errors })
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
function pageOf<T extends z.ZodType>(item: T) {
  return z.strictObject({
    data: z.array(item),
    nextCursor: z.string().nullable().openapi({
      description:
        'Pass it as `cursor` to get the next page; null on the last page. With a filter that leaves much out, a page may be short or empty although it is not null',
    }),
  })
}

const JSON_TYPE = 'application/json'
const CSV_TYPE = 'text/csv'

type CsvResponse = Response & TypedResponse<string, 200, 'body'>

/** A page in the form that the request prefers. */
export type PageResponse<T> =
  | CsvResponse
  | (Response & TypedResponse<JSONParsed<Page<T>>, 200, 'json'>)

/** Describes a page of a list, as JSON or as CSV, for a route's declaration. Answer it with `respondPage`. */
export function describePage<T extends z.ZodType>(item: T, description = 'A page') {
  return describeWithCsv(pageOf(item), description)
}

/** The same for a page that is written as text; the returned type leaves the schema out. */
export function describeTextPage(page: z.ZodType): { description: string } {
  return describeWithCsv(page, 'A page')
}

function describeWithCsv<T extends z.ZodType>(page: T, description: string) {
  return {
    description,
    headers: referToHeaders(['Link']),
    content: {
      [JSON_TYPE]: { schema: page },
      [CSV_TYPE]: {
        schema: z.string().openapi({
          description:
            'The same rows (RFC 4180), with a header row: members of nested objects as `object.member`, lists as JSON',
        }),
      },
    },
  }
}

/** Whether the request prefers CSV to JSON (RFC 9110, 12.5.1). The response states that it depends on that. */
export function prefersCsv(c: HttpContext<HttpEnv>): boolean {
  c.header('vary', 'Accept', { append: true })
  const supports = [JSON_TYPE, CSV_TYPE]
  return accepts(c, { header: 'Accept', supports, default: JSON_TYPE }) === CSV_TYPE
}

/**
 * Answers with a page of a list, as CSV if the request prefers that; then `Link` leads to the next page (RFC 8288).
 * @param schema of a row
 */
export function respondPage<T extends object>(
  c: HttpContext<HttpEnv>,
  page: Page<T>,
  schema: z.ZodType<T>,
): PageResponse<T> {
  if (!prefersCsv(c)) return c.json(page, 200)
  return respondCsv(c, writeCsv(schema, page.data), page.nextCursor, 'cursor')
}

/**
 * Answers with CSV.
 * @param next the cursor of the next page; null without one
 * @param parameter the query parameter that takes it
 */
export function respondCsv(
  c: HttpContext,
  csv: string,
  next: string | null,
  parameter: string,
): CsvResponse {
  const headers = { 'content-type': `${CSV_TYPE}; charset=utf-8` }
  if (next === null) return c.body(csv, 200, headers)
  const url = new URL(c.req.url)
  url.searchParams.set(parameter, next)
  return c.body(csv, 200, { ...headers, link: `<${url.pathname}${url.search}>; rel="next"` })
}

/** A member of the rows, and the names that lead to it: one, or several within nested objects. */
type Column = readonly string[]

/** Written before a text that a spreadsheet would take for a formula. */
const GUARD = /^[=+\-@\t\r]/

/** What ends a cell or a row (RFC 4180). */
const SEPARATOR = /[",\r\n]/

/**
 * Writes rows as CSV (RFC 4180) with a header row: a column for each member of their schema, the members of a nested
 * object as `object.member`, a list as its JSON. Text that begins with `= + - @`, tab or CR gets a `'` before it.
 * @param schema of a row; its columns are the same whatever the rows hold
 */
export function writeCsv(schema: z.ZodType, rows: readonly object[]): string {
  const columns = listColumns(schema)
  const header = columns.map((column) => column.join('.'))
  const lines = rows.map((row) => columns.map((column) => writeCell(readMember(row, column))))
  return [header, ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/** The columns of a schema, in its order. Of a union they are those of all its members, each once. */
function listColumns(schema: z.ZodType): Column[] {
  const columns = new Map(findColumns(schema, []).map((column) => [column.join('.'), column]))
  return [...columns.values()]
}

function findColumns(schema: z.ZodType, path: Column): Column[] {
  const bare = unwrap(schema)
  if (bare instanceof z.ZodObject) {
    return Object.entries(bare.shape).flatMap(([name, member]) =>
      member instanceof z.ZodType ? findColumns(member, [...path, name]) : [],
    )
  }
  if (bare instanceof z.ZodUnion && path.length === 0) {
    return bare.options.flatMap((one) => (one instanceof z.ZodType ? findColumns(one, path) : []))
  }
  return [path]
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (!(schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)) return schema
  const inner = schema.unwrap()
  return inner instanceof z.ZodType ? unwrap(inner) : schema
}

function readMember(row: object, column: Column): unknown {
  let value: unknown = row
  for (const name of column) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Object.entries(value).find(([key]) => key === name)?.[1]
  }
  return value
}

function writeCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'object') return quote(JSON.stringify(value), SEPARATOR)
  return typeof value === 'string' ? quoteCell(value, SEPARATOR) : String(value)
}

/**
 * Writes a text as a cell of CSV, which no spreadsheet takes for a formula.
 * @param separator what a text holds that has to stand in quotes
 */
export function quoteCell(text: string, separator: RegExp): string {
  return quote(GUARD.test(text) ? `'${text}` : text, separator)
}

function quote(text: string, separator: RegExp): string {
  return separator.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
