import { z } from '@hono/zod-openapi'
import type { Context as HttpContext, TypedResponse } from 'hono'
import { accepts } from 'hono/accepts'
import type { JSONParsed } from 'hono/utils/types'
import { writeCsv } from './csv.ts'
import type { HttpEnv } from './env.ts'
import { referToHeaders } from './headers.ts'
import { type Page, pageOf } from './page.ts'

const JSON_TYPE = 'application/json'
const CSV_TYPE = 'text/csv'

type CsvResponse = Response & TypedResponse<string, 200, 'body'>

/** A page in the form that the request prefers. */
type PageResponse<T> = CsvResponse | (Response & TypedResponse<JSONParsed<Page<T>>, 200, 'json'>)

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
