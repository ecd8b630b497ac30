import postgres from 'postgres'
import { DomainError } from '../errors.ts'
import { createSlots, type Release } from '../platform/concurrency/slots.ts'
import { READ_TIMEOUT_MS } from '../platform/postgres/pool.ts'
import type { Database } from './client.ts'

export type ReadDatabase = Pick<Database, 'sql' | 'drizzle'>

const LIMITS = {
  /** As many as a key may have streams of the feed, each of which reads when it is opened. */
  maxWaitingPerHolder: 256,
  maxWaiting: 2_048,
  /** A client that waits longer has given up. */
  maxWaitMs: 5_000,
}

const SHARE = 0.3

/** Returns how many connections of a process are reserved for reads: at least one, but never all. */
export function countReadConnections(connections: number): number {
  return Math.max(1, Math.floor(connections * SHARE))
}

export type Reads = ReturnType<typeof createReads>

/**
 * Creates the queue for lists, searches and any other read that is more than a look-up by key. Its sessions are its
 * own, so notifications, queries and look-ups never wait for reads.
 * @param slots the number of these sessions. One holder gets at most half of them, so with several there is always
 *   one for another holder. Of three sessions a holder gets one: with two, a flood of lists from one key would occupy
 *   both of two processors and double the p99 latency of notifications
 */
export function createReads(
  database: ReadDatabase,
  slots: number,
  limits: Partial<typeof LIMITS> = {},
) {
  const { maxWaitingPerHolder, maxWaiting, maxWaitMs } = { ...LIMITS, ...limits }
  const turns = createSlots(slots, { perHolder: Math.max(1, slots >> 1) })

  async function takeTurn(holder: string): Promise<Release> {
    const mayWait = turns.waiting() < maxWaiting && turns.waiting(holder) < maxWaitingPerHolder
    const release = mayWait ? await turns.take(holder, maxWaitMs) : turns.tryTake(holder)
    if (release) return release
    const detail =
      'Too many lists and searches are waiting: send fewer at once, and repeat this one in a moment'
    throw new DomainError('unavailable', detail, { retryAfterS: 1 })
  }

  return {
    /**
     * Runs a read when it is its turn. The next turn goes to the waiting holder with the fewest running reads. A read
     * may send several statements, but must not start another read, which might never get a turn.
     * @param holder whom the read is for: an API key, a person, or a part of this service
     * @throws DomainError `unavailable` when too many reads wait, or a statement takes longer than `READ_TIMEOUT_MS`
     */
    async run<T>(holder: string, read: (database: ReadDatabase) => Promise<T>): Promise<T> {
      const release = await takeTurn(holder)
      try {
        return await read(database)
      } catch (error) {
        throw isCancelled(error) ? refuseSlowRead() : error
      } finally {
        release()
      }
    },
    count: () => turns.held() + turns.waiting(),
  }
}

/** SQLSTATE query_canceled, which a statement timeout also reports. */
const CANCELLED = '57014'

/** The query builder wraps the server's error as its cause. */
function isCancelled(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return error.code === CANCELLED
  return error instanceof Error && isCancelled(error.cause)
}

function refuseSlowRead(): DomainError {
  const seconds = READ_TIMEOUT_MS / 1000
  const detail = `Reading this took longer than ${seconds} seconds: narrow the filter, for example by from and to or to one order, or repeat it in a moment`
  return new DomainError('unavailable', detail, { retryAfterS: 5 })
}
