import type { Sql } from '../../src/db/client.ts'
import type { TestDatabase } from './database.ts'
import { waitUntil } from './wait-until.ts'

/** How many sessions of this database wait for a lock that somebody else holds. */
export async function countBlocked({ sql }: TestDatabase): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*) as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  return row?.n ?? 0
}

export async function waitUntilBlocked(database: TestDatabase, sessions = 1): Promise<void> {
  const blocked = async () => (await countBlocked(database)) === sessions
  await waitUntil(blocked, { what: `${sessions} session(s) wait for a lock` })
}

/** Waits for the work to end, or throws as soon as it is seen to wait for a lock. */
export async function expectUnblocked<T>(database: TestDatabase, work: Promise<T>): Promise<T> {
  let ended = false
  const end = () => {
    ended = true
  }
  work.then(end, end)
  await waitUntil(
    async () => {
      if (!ended && (await countBlocked(database)) > 0) throw new Error('it waits for a lock')
      return ended
    },
    { what: 'the work ends' },
  )
  return work
}

/**
 * Runs `work` while `hold` is done but not committed, on a connection of its own; it is committed
 * when `work` is through.
 */
export async function whileUncommitted<H, T>(
  { sql }: TestDatabase,
  hold: (held: Sql) => Promise<H>,
  work: (commit: () => Promise<void>, done: H) => Promise<T>,
): Promise<T> {
  const held = await sql.reserve()
  let open = true
  const commit = async () => {
    open = false
    await held`commit`
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
