import type { Sql } from '../db/client.ts'

export type EndedRefunds = { succeeded: number; failed: number }

/** Counting may take one part in so many of the time. */
const SHARE = 20

/**
 * Counts the refunds that have ended. That reads their whole table, so a large one is counted less often:
 * a small installation's numbers are those of the moment, some millions of rows are a minute old.
 * @returns the newest count; its promise is shared by all who ask while it is made. Throws database errors
 */
export function createEndedCount(sql: Sql): () => Promise<EndedRefunds> {
  let newest: Promise<EndedRefunds> | undefined
  let validUntil = 0

  async function count(): Promise<EndedRefunds> {
    const started = performance.now()
    const [row] = await sql<EndedRefunds[]>`
      select count(*) filter (where status = 'succeeded') as succeeded,
        count(*) filter (where status = 'failed') as failed
      from refunds`
    const ended = performance.now()
    validUntil = ended + SHARE * (ended - started)
    return row ?? { succeeded: 0, failed: 0 }
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
