import postgres from 'postgres'
import { DomainError } from '../errors.ts'
import { createSlots, type Release } from '../platform/concurrency/slots.ts'
import { READ_TIMEOUT_MS } from '../platform/postgres/pool.ts'
import type { Database } from './client.ts'

/** What a read uses. */
export type ReadDatabase = Pick<Database, 'sql' | 'drizzle'>

export type ReadLimits = {
  /** Reads of one holder that may wait. */
  maxWaitingPerHolder: number
  /** Reads that may wait in all. */
  maxWaiting: number
  /** How long a read waits (ms): a client that waits longer has given up. */
  maxWaitMs: number
}

/** As many as a key may have streams of the feed, each of which reads when it is opened. */
const LIMITS: ReadLimits = { maxWaitingPerHolder: 256, maxWaiting: 2_048, maxWaitMs: 5_000 }

/** The share of the connections that reads have. */
const SHARE = 0.3

/** Returns how many of a process's connections reads have: at least one, and never all. */
export function countReadConnections(connections: number): number {
  return Math.max(1, Math.floor(connections * SHARE))
}

export type Reads = ReturnType<typeof createReads>

/**
 * Creates the turns of lists, searches and everything else that reads more than a row by its key. It has sessions of
 * its own, so however much is read, notifications, queries and look-ups never wait for it.
 * @param slots the sessions of the database. One holder has less than half of them or, of an even number, half: with
 *   several there is always one for another. With three, a flood of lists by one key takes one of two processors, and
 *   p99 of notifications is half of what it is when two are taken
 */
export function createReads(
  database: ReadDatabase,
  slots: number,
  limits: Partial<ReadLimits> = {},
) {
  const { maxWaitingPerHolder, maxWaiting, maxWaitMs } = { ...LIMITS, ...limits }
  const turns = createSlots(slots, { perHolder: Math.max(1, slots >> 1) })

  async function takeTurn(holder: string): Promise<Release> {
    const mayWait = turns.waiting() < maxWaiting && turns.waiting(holder) < maxWaitingPerHolder
    const release = mayWait ? await turns.take(holder, maxWaitMs) : turns.tryTake(holder)
    if (!release) throw refuseRead()
    return release
  }

  return {
    /**
     * Runs a read in its turn: of the holders that wait, the one with the fewest reads under way is next. It may send
     * several statements; it must not run another read inside, whose turn might never come.
     * @param holder whoever the read is for: an API key, a person, a part of this service
     * @throws DomainError `unavailable` when too many reads wait, or when a statement takes longer than `READ_TIMEOUT_MS`
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
    /** Counts the reads under way and those that wait. */
    count: () => turns.held() + turns.waiting(),
  }
}

/** SQLSTATE query_canceled, which is also that of a statement that took too long. */
const CANCELLED = '57014'

/** The query builder wraps the server's error. */
function isCancelled(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return error.code === CANCELLED
  return error instanceof Error && isCancelled(error.cause)
}

function refuseRead(): DomainError {
  const detail =
    'Too many lists and searches are waiting: send fewer at once, and repeat this one in a moment'
  return new DomainError('unavailable', detail, { retryAfterS: 1 })
}

function refuseSlowRead(): DomainError {
  const seconds = READ_TIMEOUT_MS / 1000
  const detail = `Reading this took longer than ${seconds} seconds: narrow the filter, for example by from and to or to one order, or repeat it in a moment`
  return new DomainError('unavailable', detail, { retryAfterS: 5 })
}
