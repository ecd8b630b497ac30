import postgres from 'postgres'
import { DomainError } from '../errors.ts'
import { createSlots, type Release } from '../platform/concurrency/slots.ts'
import { READ_TIMEOUT_MS } from '../platform/postgres/pool.ts'
import type { Database } from './client.ts'

export type ReadDatabase = Pick<Database, 'sql' | 'db'>

/** What reads more than a row by its key has sessions of its own, so that notifications, queries and look-ups never wait for it. */
export type Reads = {
  /**
   * Runs a read in its turn: the holder with the fewest reads under way is next. It must not run another read inside.
   * @param holder an API key, a person, a part of this service
   * @throws DomainError `unavailable` when too many wait, or a statement takes longer than `READ_TIMEOUT_MS`
   */
  run<T>(holder: string, read: (database: ReadDatabase) => Promise<T>): Promise<T>
  /** Under way, and waiting. */
  count(): number
}

export type ReadLimits = {
  maxWaitingPerHolder: number
  maxWaiting: number
  /** How long a read waits (ms): a client that waits longer has given up. */
  maxWaitMs: number
}

/** As many as a key may have streams of the feed, each of which reads when it is opened. */
const LIMITS: ReadLimits = { maxWaitingPerHolder: 256, maxWaiting: 2_048, maxWaitMs: 5_000 }

const SHARE = 0.3

/** At least one of a process's connections, and never all. */
export function countReadConnections(connections: number): number {
  return Math.max(1, Math.floor(connections * SHARE))
}

/**
 * @param slots the sessions. One holder has less than half of them or, of an even number, half. With three, a flood of lists by
 *   one key takes one of two processors, and p99 of notifications is half of what it is when two are taken
 */
export function createReads(
  database: ReadDatabase,
  slots: number,
  limits: Partial<ReadLimits> = {},
): Reads {
  const { maxWaitingPerHolder, maxWaiting, maxWaitMs } = { ...LIMITS, ...limits }
  const turns = createSlots(slots, { perHolder: Math.max(1, slots >> 1) })

  async function takeTurn(holder: string): Promise<Release> {
    const mayWait = turns.waiting() < maxWaiting && turns.waiting(holder) < maxWaitingPerHolder
    const release = mayWait ? await turns.take(holder, maxWaitMs) : turns.tryTake(holder)
    if (!release) throw refuseRead()
    return release
  }

  return {
    async run(holder, read) {
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

/** SQLSTATE query_canceled, also of a statement that took too long. */
const CANCELLED = '57014'

function isCancelled(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === CANCELLED
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
