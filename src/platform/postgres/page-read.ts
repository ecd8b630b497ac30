import { sql } from 'drizzle-orm'

/**
 * Rows that a page compares with its filter at most. They take 10 ms, so that even a filter that nothing passes takes
 * no more of the database than a full page does of its connection.
 */
export const EXAMINED = 5_000

/**
 * Further columns of the rows of `pickNewest`, for `cutRead`: whether the row passes the filter, and whether reading
 * its account stopped there, after `examined` rows.
 */
export const EXAMINATION = {
  fits: sql<boolean | null>`fits`,
  stops: sql<boolean | null>`stops`,
}

/** Rows of a page, more than `limit` of them if there is a next one. */
export type PageRead<Row> = {
  rows: Row[]
  /** The last row that was examined, if reading stopped there before the page was full: the next page begins behind it. */
  stoppedAt: Row | undefined
}

/**
 * Reads the `EXAMINATION` of the rows of `pickNewest`, in their order. Behind the first row at which an account stopped,
 * rows of that account may be missing, so nothing is shown from there on.
 */
export function cutRead<Row extends Examination>(
  rows: readonly Row[],
  limit: number,
): PageRead<Omit<Row, keyof Examination>> {
  const stop = rows.findIndex(({ stops }) => stops === true)
  const examined = stop === -1 ? rows : rows.slice(0, stop + 1)
  const fitting = examined.flatMap(({ fits, stops: _, ...row }) => (fits === true ? [row] : []))
  return { rows: fitting, stoppedAt: fitting.length > limit ? undefined : rows[stop] }
}

type Examination = { fits: boolean | null; stops: boolean | null }

const ROWS_READ = [11, 51, 101, 201]

/**
 * Returns how many rows are read for a page, as a literal in its statement: one of few numbers, above the page's own,
 * because every connection keeps a prepared statement for each.
 */
export function countRowsRead(limit: number): number {
  return ROWS_READ.find((rows) => rows > limit) ?? Math.trunc(limit) + 1
}
