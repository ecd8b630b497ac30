import type { ApiRequest, QueryValue, Transport } from './http.ts'
import type { CallOptions } from './options.ts'

/** A page of a list. `nextCursor` requests the next page; it is null on the last one. */
export type Page<T> = { data: T[]; nextCursor: string | null }

/** The start of a list and the size of its pages. */
export type PageOptions = {
  /** The `nextCursor` of an earlier page. */
  cursor?: string | undefined
  /** Items per page, at most 200. Default 50. */
  limit?: number | undefined
}

/** A page as CSV. `nextCursor` is null on the last one. */
export type CsvPage = { text: string; nextCursor: string | null }

/** A list that is fetched while it is iterated; no request is sent before. */
export type Listing<T> = Pages<T> & {
  /** The first page, or the one at `cursor`, as CSV with a header row (RFC 4180). */
  csv(): Promise<CsvPage>
}

/** The pages of a list. */
export type Pages<T> = AsyncIterable<T> & {
  /** All pages, in order. */
  pages(): AsyncIterable<Page<T>>
  /** Only the first page, or the one at `cursor`. */
  page(): Promise<Page<T>>
}

/**
 * Makes the listing of a route.
 * @param filter the query parameters, `cursor` and `limit` among them
 */
export function listRoute<T>(
  transport: Transport,
  path: string,
  { cursor: from, ...filter }: PageOptions & Readonly<Record<string, QueryValue>>,
  options?: CallOptions,
): Listing<T> {
  const locate = (cursor: string | undefined) => ({ path, query: { ...filter, cursor } })
  const readPage = (cursor: string | undefined) =>
    transport.request<Page<T>>(locate(cursor), options)
  return { ...makePages(readPage, from), csv: () => readCsv(transport, locate(from), options) }
}

/** A problem is JSON, whatever the request accepts; no row of a list begins with a brace. */
const parseCsv = (text: string): unknown => (text.startsWith('{') ? JSON.parse(text) : text)

async function readCsv(
  transport: Transport,
  request: ApiRequest,
  options: CallOptions | undefined,
): Promise<CsvPage> {
  const accept = { headers: { accept: 'text/csv' }, parse: parseCsv }
  const { headers, body } = await transport.send({ ...request, ...accept }, options)
  const [, next] = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '') ?? []
  const nextCursor =
    next === undefined ? null : new URL(next, 'http://list').searchParams.get('cursor')
  return { text: String(body), nextCursor }
}

/**
 * Makes the pages of a listing that starts at the cursor `from`.
 * @param readPage reads the page at a cursor
 */
export function makePages<T>(
  readPage: (cursor: string | undefined) => Promise<Page<T>>,
  from: string | undefined,
): Pages<T> {
  async function* pages(): AsyncGenerator<Page<T>, void> {
    let cursor = from
    do {
      const page = await readPage(cursor)
      yield page
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
  }
  return {
    pages,
    page: () => readPage(from),
    async *[Symbol.asyncIterator]() {
      for await (const { data } of pages()) yield* data
    },
  }
}
