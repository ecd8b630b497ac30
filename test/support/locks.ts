import { expect } from 'vitest'
import { collectAfterCommit } from '../../src/platform/postgres/notify.ts'
import type { Sql } from '../../src/platform/postgres/types.ts'
import type { TestDatabase } from './database.ts'
import { waitUntil } from './wait-until.ts'

/**
 * Counts the sessions of this database that wait for a lock. One that was given it may still say that it waits, until the
 * machine has time for it.
 */
export async function countBlocked({ sql }: TestDatabase): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and pg_blocking_pids(pid) <> '{}'`
  return row?.n ?? 0
}

const BLOCKED_WITHIN_MS = 10_000

/**
 * Waits until at least that many sessions wait for a lock: a worker may wait behind the one that a test watches. Fails by an
 * assertion, as the ledger of guards asks of the test of a lock.
 */
export async function waitUntilBlocked(database: TestDatabase, sessions = 1): Promise<void> {
  const deadline = performance.now() + BLOCKED_WITHIN_MS
  let blocked = await countBlocked(database)
  while (blocked < sessions && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    blocked = await countBlocked(database)
  }
  expect(blocked, 'sessions that wait for a lock').toBeGreaterThanOrEqual(sessions)
}

/** Starts all of this while `hold` keeps a lock that each waits for in turn, and then lets it go on together. */
export async function atOnce<T>(
  database: TestDatabase,
  hold: (held: Sql) => Promise<unknown>,
  starts: readonly (() => Promise<T>)[],
): Promise<T[]> {
  return await whileUncommitted(database, hold, async (commit) => {
    const running: Promise<T>[] = []
    for (const start of starts) {
      running.push(start())
      await waitUntilBlocked(database, running.length)
    }
    await commit()
    return await Promise.all(running)
  })
}

/** Waits for the work to end; fails as soon as it waits for a lock. */
export async function expectUnblocked<T>(database: TestDatabase, work: Promise<T>): Promise<T> {
  let ended = false
  const end = () => {
    ended = true
  }
  work.then(end, end)
  await waitUntil(
    async () => {
      if (!ended && (await countBlocked(database)) > 0) {
        expect.unreachable('the work waits for a lock')
      }
      return ended
    },
    { what: 'the end of the work', everyMs: 5 },
  )
  return work
}

/**
 * Runs `work` while the statements of `hold` are uncommitted on a separate connection, and commits them after
 * `work` has ended.
 */
export async function whileUncommitted<H, T>(
  { sql }: TestDatabase,
  hold: (held: Sql) => Promise<H>,
  work: (commit: () => Promise<void>, done: H) => Promise<T>,
): Promise<T> {
  const held = await sql.reserve()
  let open = true
  const sendNotifications = collectAfterCommit(sql, held)
  const commit = async () => {
    open = false
    await held`commit`
    sendNotifications()
  }
  try {
    await held`begin`
    const done = await hold(held)
    return await work(commit, done)
  } finally {
    if (open) await held`rollback`
    held.release()
  }
}

/**
 * Starts `work` while the statements of `hold` are uncommitted, and commits these once it waits for their locks.
 * @param meanwhile what is looked at before the commit
 */
export async function commitOnceBlocked<T>(
  database: TestDatabase,
  hold: (held: Sql) => Promise<unknown>,
  work: () => Promise<T>,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<T> {
  return await whileUncommitted(database, hold, async (commit) => {
    const waiting = work()
    await waitUntilBlocked(database)
    await meanwhile()
    await commit()
    return await waiting
  })
}
