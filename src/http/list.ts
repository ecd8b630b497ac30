import { z } from '@hono/zod-openapi'
import type { Context as HttpContext, TypedResponse } from 'hono'
import { accepts } from 'hono/accepts'
import type { JSONParsed } from 'hono/utils/types'
import { invalidField } from '../errors.ts'
import { referToHeaders } from './describe.ts'
import { integerParameter, isTime } from './fields.ts'
import type { HttpEnv } from './problems.ts'

/** A row's position in a list ordered by time, then id. It stays valid while rows are inserted. */
export type Position = { time: string; id: string; merchantCode: string }

export type Page<T> = { data: T[]; nextCursor: string | null }

// A text column cannot hold NUL.
const Text = z.string().refine((text) => !text.includes('\0'))
/** A time as Postgres formats it. */
const Written = z.string().refine((time) => isTime(time.replace(' ', 'T').replace(/\+00$/, 'Z')))
const POSITION = z.tuple([Written, Text.min(1), Text])

export const DEFAULT_LIMIT = 50

export const pageParameters = {
  limit: integerParameter('a whole number', [1, 200], {
    default: DEFAULT_LIMIT,
    description: 'The maximum number of rows on a page',
    example: 50,
  }),
  cursor: z.string().max(1_000).optional().openapi({
    description: '`nextCursor` of the previous page; opaque, and valid only for the same list',
  }),
}

function writeCursor({ time, id, merchantCode }: Position): string {
  return Buffer.from(JSON.stringify([time, id, merchantCode])).toString('base64url')
}

/**
 * @param idForm the form of the ids in this list, if the database type requires one
 * @throws DomainError `invalid_request` for a text that is not from `writeCursor`, or is another list's cursor
 */
export function readCursor(cursor: string, idForm: z.ZodType<string> = z.string()): Position {
  try {
    const text = Buffer.from(cursor, 'base64url').toString()
    const [time, id, merchantCode] = POSITION.parse(JSON.parse(text))
    const position = { time, id: idForm.parse(id), merchantCode }
    // Decoding skips characters that are not Base64, so require exactly the text that was issued.
    if (writeCursor(position) !== cursor) throw new Error('not the text that was issued')
    return position
  } catch {
    throw refuseCursor()
  }
}

export const refuseCursor = () => invalidField('cursor', 'is not a cursor of this list')

/**
 * Cuts a page out of rows. More rows than `limit` only show that there is a next page. If reading stopped before the
 * page was full, the next page begins after the last row that was examined.
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

const JSON_TYPE = 'application/json'
const CSV_TYPE = 'text/csv'

type CsvResponse = Response & TypedResponse<string, 200, 'body'>

export type PageResponse<T> =
  | CsvResponse
  | (Response & TypedResponse<JSONParsed<Page<T>>, 200, 'json'>)

/** Describes a page of a list, as JSON or CSV. Respond with `respondPage`. */
export function describePage<T extends z.ZodType>(item: T, description = 'A page') {
  const nextCursor = z.string().nullable().openapi({
    description:
      'Pass it as `cursor` to get the next page; null on the last page. With a filter that leaves much out, a page may be short or empty although it is not null',
  })
  return describeWithCsv(z.strictObject({ data: z.array(item), nextCursor }), description)
}

/** The same for a page that is written as text: the returned type omits the schema. */
export function describeTextPage(page: z.ZodType): { description: string } {
  return describeWithCsv(page, 'A page')
}

function describeWithCsv<T extends z.ZodType>(page: T, description: string) {
  const csv = z.string().openapi({
    description:
      'The same rows (RFC 4180), with a header row: members of nested objects as `object.member`, lists as JSON',
  })
  const content = { [JSON_TYPE]: { schema: page }, [CSV_TYPE]: { schema: csv } }
  return { description, headers: referToHeaders(['Link']), content }
}

/** Returns whether the request prefers CSV to JSON (RFC 9110, 12.5.1), and adds `Vary` to the response. */
export function prefersCsv(c: HttpContext<HttpEnv>): boolean {
  c.header('vary', 'Accept', { append: true })
  const supports = [JSON_TYPE, CSV_TYPE]
  return accepts(c, { header: 'Accept', supports, default: JSON_TYPE }) === CSV_TYPE
}

export function respondPage<T extends object>(
  c: HttpContext<HttpEnv>,
  page: Page<T>,
  schema: z.ZodType<T>,
): PageResponse<T> {
  if (!prefersCsv(c)) return c.json(page, 200)
  return respondCsv(c, writeCsv(schema, page.data), page.nextCursor, 'cursor')
}

/** Responds with CSV. `Link` (RFC 8288) is this URL with the cursor `next` as `parameter`. */
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

/** The path of names to a member of a row, which may be in nested objects. */
type Column = readonly string[]

/** The beginnings of a text that a spreadsheet would take for a formula. */
const GUARD = /^[=+\-@\t\r]/

const SEPARATOR = /[",\r\n]/

/**
 * Writes rows as CSV (RFC 4180) with a header row. Each member of the schema is a column, members of nested objects
 * as `object.member`, lists as JSON. A text that begins with `= + - @`, tab or CR gets a `'` before it.
 */
export function writeCsv(schema: z.ZodType, rows: readonly object[]): string {
  // The members of a union may have columns in common.
  const columns = new Map(findColumns(schema, []).map((column) => [column.join('.'), column]))
  const lines = rows.map((row) =>
    [...columns.values()].map((column) => writeCell(readMember(row, column))),
  )
  return [[...columns.keys()], ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
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
  return column.reduce<unknown>((value, name) => {
    return Object.entries(value ?? {}).find(([key]) => key === name)?.[1]
  }, row)
}

function writeCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'object') return quote(JSON.stringify(value), SEPARATOR)
  return typeof value === 'string' ? quoteCell(value, SEPARATOR) : String(value)
}

/** Writes a text as a cell that no spreadsheet takes for a formula, quoted if `separator` matches. */
export function quoteCell(text: string, separator: RegExp): string {
  return quote(GUARD.test(text) ? `'${text}` : text, separator)
}

function quote(text: string, separator: RegExp): string {
  return separator.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
