/** A page of a list. `nextCursor` requests the next page; it is null on the last one. */
export type Page<T> = { data: T[]; nextCursor: string | null }

/** The start of a list and the size of its pages. */
export type PageWish = {
  /** The `nextCursor` of an earlier page. */
  cursor?: string | undefined
  /** Items per page, at most 200. Default 50. */
  limit?: number | undefined
}

/** A list that is fetched while it is iterated; no request is sent before. */
export type Listing<T> = AsyncIterable<T> & {
  /** All pages, in order. */
  pages(): AsyncIterable<Page<T>>
  /** Only the first page, or the one at `cursor`. */
  page(): Promise<Page<T>>
}

/**
 * Makes a listing that starts at the cursor `from`.
 * @param readPage reads the page at a cursor
 */
export function makeListing<T>(
  readPage: (cursor: string | undefined) => Promise<Page<T>>,
  from: string | undefined,
): Listing<T> {
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
