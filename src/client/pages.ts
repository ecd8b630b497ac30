/** A page of a list; ask with `nextCursor` for the next, null after the last. */
export type Page<T> = { data: T[]; nextCursor: string | null }

/** Where a list begins, and how much of it comes at once. */
export type PageWish = {
  /** Of an earlier page. */
  cursor?: string | undefined
  /** Of one page, at most 200. Default 50. */
  limit?: number | undefined
}

/** A list that is read while it is walked through; nothing is asked before. */
export type Listing<T> = AsyncIterable<T> & {
  /** Page after page, to the end. */
  pages(): AsyncIterable<Page<T>>
  /** The first page alone, or the one at `cursor`. */
  page(): Promise<Page<T>>
}

/** @param readPage reads the page at a cursor */
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
