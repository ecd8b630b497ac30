import { EventEmitter, once } from 'node:events'
import { statfs } from 'node:fs/promises'
import { describeStop, findStop, hasInstallation } from '../db/installation.ts'
import {
  isSchemaCurrent,
  loadMigrations,
  MIGRATE_COMMAND,
  readSchemaName,
} from '../db/migration-state.ts'
import { proveWrites } from '../health/watch-outages.ts'
import { withTimeout } from '../platform/concurrency/timing.ts'
import { describeOutage } from '../platform/postgres/describe-outage.ts'
import { notify } from '../platform/postgres/notify.ts'
import { CLI } from '../version.ts'
import { type Examinations, formatSpan, judge, orFine, readOne } from './diagnosis.ts'

/** How long a wake-up may take (ms); one that arrives takes milliseconds. */
const WAKEUP_MS = 2_000
/** Less free space than this is soon used up (bytes). */
const LEAST_FREE = 2 ** 30
/** Fewer dead rows are no burden, however small the table. */
const LEAST_DEAD = 50_000

const UNSAFE = 'a crash of the database server loses acknowledged commits, or the whole database'

/** Examinations of the database server. After `schema` they need the tables of this version. */
export const OF_SERVER: Examinations = {
  async schema({ sql, config }) {
    const name = (await readSchemaName(sql)) ?? 'no migration'
    if (await isSchemaCurrent(sql)) return judge(name, false)
    if (await hasInstallation(sql)) {
      const action = `run ${MIGRATE_COMMAND} or start the service, and examine the rest then`
      return judge(`${name}: older than this version`, action)
    }
    return judge(
      `the schema ${config.DATABASE_SCHEMA} holds no installation`,
      `set DATABASE_SCHEMA to one that "${CLI} cells list" names, or start the service to make one`,
      'error',
    )
  },

  async restore({ sql }) {
    const stop = await findStop(sql)
    if (!stop) return judge('the server of before: refunds and events are sent', false)
    return judge(describeStop(stop), 'follow "After a restore" in docs/operations.md', 'error')
  },

  async durability({ sql }) {
    const rows = await sql<{ name: string }[]>`
      select name from pg_settings
      where name in ('fsync', 'full_page_writes', 'autovacuum') and setting = 'off' order by name`
    const found = rows.map(({ name }) =>
      name === 'autovacuum'
        ? judge('autovacuum is off: tables and indexes grow without bound', 'set autovacuum = on')
        : judge(`${name} is off: ${UNSAFE}`, `set ${name} = on, and restart the server`, 'error'),
    )
    return orFine(found, 'commits survive a crash of the server')
  },

  async standby({ sql }) {
    const { names, all, sync } = await readOne(sql<{ names: string; all: number; sync: number }[]>`
      select current_setting('synchronous_standby_names') as names, count(pid)::int as all,
        count(*) filter (where sync_state in ('sync', 'quorum'))::int as sync
      from pg_stat_replication`)
    if (names === '') return judge(`${all} standbys, none of which commits wait for`, false)
    if (sync > 0) return judge(`commits wait for a standby, and ${sync} confirm them`, false)
    return judge(
      `synchronous_standby_names is ${names}, and no such standby is connected: every commit waits`,
      'start the standby, or empty synchronous_standby_names; see "A standby, and failover" in docs/operations.md',
      'error',
    )
  },

  async connections({ sql }) {
    const { used, most } = await readOne(sql<Record<'used' | 'most', number>[]>`
      select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
        (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as used`)
    return judge(
      `${used} of ${most} connections of the database server are in use`,
      used > 0.8 * most &&
        'lower DATABASE_POOL of all processes, or raise max_connections of the server',
    )
  },

  /** Sends itself a wake-up. A lost one only delays: everything that waits for one polls as well. */
  async wakeups({ sql }) {
    const channel = `doctor_${process.pid}_${Date.now()}`
    const woken = new EventEmitter()
    const hear = () => woken.emit('heard')
    const listening = await withTimeout(WAKEUP_MS, sql.listen(channel, hear))
    try {
      const heard = once(woken, 'heard', { signal: AbortSignal.timeout(WAKEUP_MS) })
      notify(sql, channel)
      await heard
      return judge('a wake-up between two sessions arrives', false)
    } catch {
      return judge(
        `a wake-up between two sessions did not arrive within ${WAKEUP_MS / 1000} s: changes are noticed by polling only, up to seconds later`,
        'connect to the database itself, or to a pooler in session mode: LISTEN does not work through one in transaction mode',
      )
    } finally {
      await listening.unlisten().catch(() => {})
    }
  },

  async disk({ sql, config }) {
    try {
      await proveWrites(sql)
    } catch (error) {
      const outage = describeOutage(error)
      if (!outage) throw error
      return judge(`${outage.what}: ${outage.meanwhile}`, `look at ${outage.look}`, 'error')
    }
    const { bytes } = await readOne(
      sql<
        { bytes: string }[]
      >`select pg_size_pretty(pg_database_size(current_database())) as bytes`,
    )
    if (config.DATABASE_URL !== undefined)
      return judge(`the database takes ${bytes}, and can grow`, false)
    const { bavail, bsize } = await statfs(config.DATA_DIR)
    const free = bavail * bsize
    return judge(
      `the database takes ${bytes}; ${(free / LEAST_FREE).toFixed(1)} GiB are free in DATA_DIR`,
      free < LEAST_FREE && 'free space on that disk, or enlarge it',
    )
  },

  /** Compares the indexes and constraints of the migrations with those that are there and valid. */
  async indexes({ sql }) {
    const text = (await loadMigrations()).flatMap(({ statements }) => statements).join('\n')
    const expected = [...text.matchAll(NAMED)]
    const rows = await sql<{ name: string }[]>`
      select c.relname::text as name from pg_index as i join pg_class as c on c.oid = i.indexrelid
      where c.relnamespace = current_schema()::regnamespace and i.indisvalid
      union select conname::text from pg_constraint
      where connamespace = current_schema()::regnamespace and convalidated`
    const there = new Set(rows.map(({ name }) => name))
    const missing = expected.filter(([, , name = '']) => !there.has(name))
    const found = missing.map(([, kind = '', name]) => {
      const action = `create it as migrations/*.sql has it: grep '"${name}"' migrations/*.sql`
      // Without a constraint or a unique index nothing stops a second row.
      return /^create index/i.test(kind)
        ? judge(
            `the index ${name} is missing or invalid: what it serves reads whole tables`,
            action,
          )
        : judge(
            `${name} is missing or invalid: what it forbids is no longer refused`,
            action,
            'error',
          )
    })
    return orFine(found, `all ${expected.length} indexes and constraints are there`)
  },

  async bloat({ sql }) {
    const tables = await sql<{ name: string; dead: number; live: number }[]>`
      select relname::text as name, n_dead_tup as dead, n_live_tup as live from pg_stat_user_tables
      where schemaname = current_schema() and n_dead_tup > ${LEAST_DEAD} and n_dead_tup > n_live_tup / 2`
    const sessions = await sql<Record<'pid' | 'seconds', number>[]>`
      select pid, extract(epoch from now() - xact_start)::float8 as seconds from pg_stat_activity
      where datname = current_database() and backend_type = 'client backend'
        and xact_start < now() - interval '5 minutes' order by xact_start limit 5`
    const found = [
      ...tables.map(({ name, dead, live }) => {
        const what = `the table ${name} has ${dead} dead rows beside ${live}`
        return judge(what, `run VACUUM (ANALYZE) ${name}`)
      }),
      ...sessions.map(({ pid, seconds }) =>
        judge(
          `a transaction has been open for ${formatSpan(seconds)} (process ${pid} of the server): nothing that was deleted since can be cleaned up`,
          `find out whose it is in pg_stat_activity, and end it: select pg_terminate_backend(${pid})`,
        ),
      ),
    ]
    return orFine(found, 'no table is bloated, and no transaction stays open')
  },
}

const NAMED = /(create(?: unique)? index|constraint)(?: concurrently)? "([^"]+)"/gi
