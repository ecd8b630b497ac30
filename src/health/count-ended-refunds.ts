import type { Sql } from '../platform/postgres/types.ts'

export type EndedRefunds = { succeeded: number; failed: number; returned: number }

/** A count is reused for this many times the time it took. */
const REUSE_FACTOR = 20

/**
 * Counts refunds that have succeeded, failed or been returned. A count scans the whole table, so a large table is
 * counted less often: in a small installation the numbers are current, with some millions of rows they are a minute old.
 * @returns a function that resolves with the newest count. Concurrent callers share one count; it throws
 *   database errors
 */
export function createEndedRefundCounter(sql: Sql): () => Promise<EndedRefunds> {
  let newest: Promise<EndedRefunds> | undefined
  let validUntil = 0

  async function count(): Promise<EndedRefunds> {
    const started = performance.now()
    const [row] = await sql<EndedRefunds[]>`
      select count(*) filter (where status = 'succeeded') as succeeded,
        count(*) filter (where status = 'failed') as failed,
        count(*) filter (where status = 'returned') as returned
      from refunds`
    const ended = performance.now()
    validUntil = ended + REUSE_FACTOR * (ended - started)
    return row ?? { succeeded: 0, failed: 0, returned: 0 }
  }

  return () => {
    if (newest && performance.now() < validUntil) return newest
    validUntil = Number.POSITIVE_INFINITY
    newest = count().catch((error: unknown) => {
      validUntil = 0
      throw error
    })
    return newest
  }
}
