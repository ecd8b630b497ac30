import { TimeoutError, withTimeout } from '../platform/concurrency/timing.ts'
import { openSession } from '../platform/postgres/pool.ts'
import { countPending, MIGRATE_COMMAND } from './describe-pending.ts'
import { migrateDatabase } from './migrate.ts'
import { MigrationError } from './migration-error.ts'
import type { MigrationLog } from './migration-session.ts'
import { readPendingMigrations } from './pending-migrations.ts'
import { requireKnownSchema } from './require-known-schema.ts'

/**
 * Makes sure that the schema is current before the service starts: applies what is pending, or, with `MIGRATE=off`, only
 * looks.
 * @throws MigrationError if a migration failed, or is pending with `off`, or the database is one of another version; errors of the connection
 */
export async function prepareSchema(
  url: string,
  { mode, log }: { mode: 'auto' | 'off'; log: MigrationLog },
): Promise<void> {
  await reachDatabase(url, log)
  if (mode === 'auto') {
    await migrateDatabase(url, {
      log,
      onApplied: ({ name, durationMs }) =>
        log.info({ migration: name, durationMs }, 'applied a migration'),
    })
    return
  }
  const { sql, close } = openSession(url, 'ipn-processor')
  try {
    await requireKnownSchema(sql)
    const pending = await readPendingMigrations(sql)
    if (pending.length > 0) throw new MigrationError(refuse(pending))
  } finally {
    await close()
  }
}

/** After this long without an answer a start says what it waits for (ms). */
const SLOW_MS = 5_000
/** Servers that do not answer, one after the other, must not hold up a start for longer (ms). */
const GIVE_UP_MS = 20_000

/** Waits for the first answer, so that a start without a database does not wait in silence, or for ever. */
async function reachDatabase(url: string, log: MigrationLog): Promise<void> {
  const { sql, close } = openSession(url, 'ipn-processor')
  const slow = setTimeout(() => {
    const text = `the database at DATABASE_URL has not answered for ${SLOW_MS / 1000} s; the start ends after ${GIVE_UP_MS / 1000} s without an answer`
    log.warn({}, text)
  }, SLOW_MS)
  try {
    await withTimeout(GIVE_UP_MS, sql`select 1`)
  } catch (error) {
    throw error instanceof TimeoutError ? Object.assign(error, { code: 'CONNECT_TIMEOUT' }) : error
  } finally {
    clearTimeout(slow)
    await close()
  }
}

function refuse(pending: readonly string[]): string {
  const [first, last] = [pending[0], pending.at(-1)]
  const names = pending.length > 1 ? `${first} to ${last}` : first
  return `The database schema is older than this version, and MIGRATE is off: ${countPending(pending)} (${names}). Run ${MIGRATE_COMMAND}, and start again; or set MIGRATE=auto`
}
