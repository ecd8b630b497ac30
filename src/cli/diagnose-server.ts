import { statfs } from 'node:fs/promises'
import { describeStop, findStop } from '../db/installation.ts'
import { loadMigrations } from '../db/migration-state.ts'
import { proveWrites } from '../health/watch-outages.ts'
import { withTimeout } from '../platform/concurrency/timing.ts'
import { describeOutage } from '../platform/postgres/describe-outage.ts'
import { notify } from '../platform/postgres/notify.ts'
import {
  count,
  type Examination,
  fail,
  formatSpan,
  info,
  type Patient,
  readOne,
  warn,
} from './diagnosis.ts'

/** What is examined of the database server, in this order. None of it changes a row. */
export const OF_SERVER: Readonly<Record<string, Examination>> = {
  restore: examineRestore,
  durability: examineDurability,
  standby: examineStandby,
  connections: examineConnections,
  wakeups: examineWakeups,
  disk: examineDisk,
  indexes: examineIndexes,
  bloat: examineBloat,
}

async function examineRestore({ sql }: Patient) {
  const stop = await findStop(sql)
  if (!stop) return info('the server of before: refunds and events are sent')
  return fail(describeStop(stop), 'follow "After a restore" in docs/operations.md')
}

async function examineDurability({ sql }: Patient) {
  const rows = await sql<{ name: string }[]>`
    select name from pg_settings
    where name in ('fsync', 'full_page_writes', 'autovacuum') and setting = 'off' order by name`
  if (rows.length === 0) return info('commits survive a crash of the server')
  return rows.flatMap(({ name }) =>
    name === 'autovacuum'
      ? warn('autovacuum is off: tables and indexes grow without bound', 'set autovacuum = on')
      : fail(
          `${name} is off: a crash of the database server loses acknowledged commits, or the whole database`,
          `set ${name} = on, and restart the database server`,
        ),
  )
}

async function examineStandby({ sql }: Patient) {
  const { names, all, sync } = await readOne(sql<{ names: string; all: number; sync: number }[]>`
    select current_setting('synchronous_standby_names') as names, count(pid)::int as all,
      count(*) filter (where sync_state in ('sync', 'quorum'))::int as sync
    from pg_stat_replication`)
  if (names === '')
    return info(`${count(all, 'standby', 'standbys')}, none of which commits wait for`)
  if (sync > 0) return info(`commits wait for a standby, and ${sync} confirm them`)
  return fail(
    `synchronous_standby_names is ${names}, and no such standby is connected: every commit waits`,
    'start the standby, or empty synchronous_standby_names; see "A standby, and failover" in docs/operations.md',
  )
}

async function examineConnections({ sql }: Patient) {
  const { used, most } = await readOne(sql<{ used: number; most: number }[]>`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
      (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as used`)
  const found = `${used} of ${most} connections of the database server are in use`
  if (used <= 0.8 * most) return info(found)
  return warn(found, 'lower DATABASE_POOL of all processes, or raise max_connections of the server')
}

/** How long a wake-up may take (ms); one that arrives takes milliseconds. */
const WAKEUP_MS = 2_000

/** Sends a wake-up to itself. Readers, the sync and webhooks poll as well, so that one that is lost only delays them. */
async function examineWakeups({ sql }: Patient) {
  const channel = `doctor_${process.pid}_${Date.now()}`
  let hear = () => {}
  const heard = new Promise<void>((resolve) => {
    hear = resolve
  })
  const listening = await withTimeout(WAKEUP_MS, sql.listen(channel, hear))
  notify(sql, channel)
  try {
    await withTimeout(WAKEUP_MS, heard)
    return info('a wake-up between two sessions arrives')
  } catch {
    return warn(
      `a wake-up between two sessions did not arrive within ${WAKEUP_MS / 1000} s: changes are noticed by polling only, up to seconds later`,
      'connect to the database itself, or to a pooler in session mode: LISTEN does not work through one in transaction mode',
    )
  } finally {
    await listening.unlisten().catch(() => {})
  }
}

/** Less free space than this is soon used up (bytes). */
const LEAST_FREE = 2 ** 30

async function examineDisk({ sql, config }: Patient) {
  try {
    await proveWrites(sql)
  } catch (error) {
    const condition = describeOutage(error)
    if (!condition) throw error
    return fail(`${condition.what}: ${condition.meanwhile}`, `look at ${condition.look}`)
  }
  const { bytes } = await readOne(
    sql<{ bytes: string }[]>`select pg_size_pretty(pg_database_size(current_database())) as bytes`,
  )
  if (config.DATABASE_URL !== undefined) return info(`the database takes ${bytes}, and can grow`)
  const { bavail, bsize } = await statfs(config.DATA_DIR)
  const free = bavail * bsize
  const found = `the database takes ${bytes}; ${(free / LEAST_FREE).toFixed(1)} GiB are free in DATA_DIR`
  return free >= LEAST_FREE ? info(found) : warn(found, 'free space on that disk, or enlarge it')
}

const NAMED = /(create(?: unique)? index|constraint)(?: concurrently)? "([^"]+)"/gi

/** Compares the indexes and constraints of the migrations with those that are there and valid. */
async function examineIndexes({ sql }: Patient) {
  const migrations = await loadMigrations()
  const text = migrations.flatMap(({ statements }) => statements).join('\n')
  const expected = [...text.matchAll(NAMED)].map(([, kind = '', name = '']) => ({ kind, name }))
  const rows = await sql<{ name: string }[]>`
    select c.relname::text as name from pg_index as i join pg_class as c on c.oid = i.indexrelid
    where c.relnamespace = current_schema()::regnamespace and i.indisvalid
    union select conname::text from pg_constraint
    where connamespace = current_schema()::regnamespace and convalidated`
  const there = new Set(rows.map(({ name }) => name))
  const missing = expected.filter(({ name }) => !there.has(name))
  if (missing.length === 0) return info(`all ${expected.length} indexes and constraints are there`)
  return missing.flatMap(({ kind, name }) => {
    const action = `create it as migrations/*.sql has it: grep '"${name}"' migrations/*.sql`
    // Without a constraint, or the unique index that is one, nothing stops a second row.
    return /^create index/i.test(kind)
      ? warn(`the index ${name} is missing or invalid: what it serves reads whole tables`, action)
      : fail(
          `${name} is missing or invalid: the database no longer refuses what it forbids`,
          action,
        )
  })
}

/** Fewer dead rows are no burden, however small the table. */
const LEAST_DEAD = 50_000

async function examineBloat({ sql }: Patient) {
  const tables = await sql<{ name: string; dead: number; live: number }[]>`
    select relname::text as name, n_dead_tup as dead, n_live_tup as live from pg_stat_user_tables
    where schemaname = current_schema() and n_dead_tup > ${LEAST_DEAD} and n_dead_tup > n_live_tup / 2`
  const sessions = await sql<{ pid: number; seconds: number }[]>`
    select pid, extract(epoch from now() - xact_start)::float8 as seconds from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
      and xact_start < now() - interval '5 minutes' order by xact_start limit 5`
  const found = [
    ...tables.flatMap(({ name, dead, live }) =>
      warn(
        `the table ${name} has ${dead} dead rows beside ${live}`,
        `run VACUUM (ANALYZE) ${name}`,
      ),
    ),
    ...sessions.flatMap(({ pid, seconds }) =>
      warn(
        `a transaction has been open for ${formatSpan(seconds)} (process ${pid} of the server): nothing that was deleted since can be cleaned up`,
        `find out whose it is in pg_stat_activity, and end it: select pg_terminate_backend(${pid})`,
      ),
    ),
  ]
  return found.length > 0 ? found : info('no table is bloated, and no transaction stays open')
}
