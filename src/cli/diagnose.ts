import { statfs } from 'node:fs/promises'
import { EXPIRING_SOON } from '../access/keys.ts'
import type { Config } from '../config/config.ts'
import { describeStop, findStop } from '../db/installation.ts'
import { loadMigrations } from '../db/migration-state.ts'
import { NO_WORKER, UNSEEN_MS } from '../db/processes.ts'
import { proveWrites } from '../health/watch-outages.ts'
import { withTimeout } from '../platform/concurrency/timing.ts'
import { describeOutage } from '../platform/postgres/describe-outage.ts'
import { notify } from '../platform/postgres/notify.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'

/** An error keeps the service from working, or puts acknowledged work at risk; a warning will, if nobody looks. */
export type Severity = 'info' | 'warning' | 'error'

/** One finding of the doctor. `action` is what to do about it; null where there is nothing to do. */
export type Diagnosis = { id: string; severity: Severity; finding: string; action: string | null }

export type Patient = { sql: Sql; config: Config }

type Found = Omit<Diagnosis, 'id'>[]

type Examination = (patient: Patient) => Promise<Found>

const info = (finding: string): Found => [{ severity: 'info', finding, action: null }]
const warn = (finding: string, action: string): Found => [{ severity: 'warning', finding, action }]
const fail = (finding: string, action: string): Found => [{ severity: 'error', finding, action }]

/** What is examined of a database that can be used, in this order. None of it changes a row. */
export const EXAMINATIONS: Readonly<Record<string, Examination>> = {
  restore: examineRestore,
  durability: examineDurability,
  standby: examineStandby,
  connections: examineConnections,
  wakeups: examineWakeups,
  disk: examineDisk,
  indexes: examineIndexes,
  bloat: examineBloat,
  processes: examineProcesses,
  backlog: examineBacklog,
  claims: examineClaims,
  refunds: examineRefunds,
  discrepancies: examineDiscrepancies,
  webhooks: examineWebhooks,
  accounts: examineAccounts,
  keys: examineKeys,
  retention: examineRetention,
}

async function readOne<T extends object>(rows: Promise<readonly T[]>): Promise<T> {
  const [row] = await rows
  if (!row) throw new Error('the database returned no row')
  return row
}

/** Formats a time span in its largest unit: `45 s`, `12 min`, `3 h`, `8 days`. */
function formatSpan(seconds: number): string {
  const [unit = '', size = 1] = SPANS.find(([, least]) => seconds >= 2 * least) ?? []
  return `${Math.floor(seconds / size)} ${unit}`
}
const SPANS = [
  ['days', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 0.5],
] as const

const count = (number: number, one: string, several = `${one}s`) =>
  `${number} ${number === 1 ? one : several}`

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

async function examineProcesses({ sql }: Patient) {
  const rows = await sql<{ role: string; version: string; commit: string | null; count: number }[]>`
    select role, version, commit, count(*)::int as count from processes
    where seen_at > now() - ${UNSEEN_MS} * interval '1 millisecond' group by 1, 2, 3 order by 1, 2`
  const list = rows.map(({ role, version, count }) => `${count} × ${role} ${version}`).join(', ')
  if (rows.length === 0) {
    return warn(
      'no process of the service is running',
      'start one: npm start, or node dist/main.js',
    )
  }
  if (rows.every(({ role }) => role === 'web'))
    return fail(`${list}: no worker is running`, NO_WORKER)
  if (new Set(rows.map(({ version, commit }) => `${version} ${commit}`)).size > 1) {
    return warn(`processes of several versions are running: ${list}`, 'complete the upgrade')
  }
  return info(`running: ${list}`)
}

/** A transaction is asked about within a second; the oldest of a backlog has waited for longer than this (s). */
const LATE_S = 60

async function examineBacklog({ sql }: Patient) {
  const { due, seconds, waiting } = await readOne(sql<
    { due: number; seconds: number; waiting: number }[]
  >`
    select count(*)::int as due, coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as seconds,
      (select count(*) from (select from event_outbox limit 10000) as o)::int as waiting
    from transactions where due_at <= now()`)
  const found = `${count(due, 'transaction is', 'transactions are')} due, ${count(waiting, 'event waits', 'events wait')} for the feed`
  if (seconds <= LATE_S) return info(found)
  return warn(
    `${found}; the oldest has waited for ${formatSpan(seconds)}`,
    'follow "When transactions are not queried" in docs/operations.md',
  )
}

async function examineClaims({ sql }: Patient) {
  const { dead } = await readOne(sql<{ dead: number }[]>`
    select count(*)::int as dead from transactions as t
    where t.due_at is not null and t.lease_owner is not null and not exists (
      select from processes as p where p.id = t.lease_owner and p.seen_at > now() - interval '1 minute')`)
  if (dead === 0) return info('no claim is left of a process that ended')
  return warn(
    `${count(dead, 'transaction is', 'transactions are')} still claimed by processes that ended more than a minute ago`,
    'start a worker if none is running; those with an open refund are taken over when their claim ends by itself',
  )
}

/** What waits for a person longer than this has been overlooked. */
const OVERLOOKED_S = 86_400

async function examineRefunds({ sql }: Patient) {
  const { review, unknown, seconds } = await readOne(sql<
    { review: number; unknown: number; seconds: number }[]
  >`
    select count(*) filter (where status = 'needs_review')::int as review,
      count(*) filter (where status = 'unknown')::int as unknown,
      coalesce(extract(epoch from now() - min(requested_at)), 0)::float8 as seconds
    from refunds where status in ('needs_review', 'unknown')`)
  const found = `${count(review, 'refund needs', 'refunds need')} a decision, ${count(unknown, 'has', 'have')} no known outcome`
  if (seconds <= OVERLOOKED_S) return info(found)
  return warn(
    `${found}; the oldest was requested ${formatSpan(seconds)} ago`,
    'decide them under Waiting for you in the console; see "When a refund waits" in docs/operations.md',
  )
}

async function examineDiscrepancies({ sql }: Patient) {
  const { open, seconds } = await readOne(sql<{ open: number; seconds: number }[]>`
    select count(*)::int as open, coalesce(extract(epoch from now() - min(at)), 0)::float8 as seconds
    from discrepancies where resolved_at is null and over_at is null`)
  const found = `${count(open, 'disagreement', 'disagreements')} with the gateway ${open === 1 ? 'is' : 'are'} open`
  if (seconds <= OVERLOOKED_S) return info(found)
  return warn(
    `${found}; the oldest is ${formatSpan(seconds)} old`,
    'look at /console/discrepancies; see "When the sides disagree" in docs/operations.md',
  )
}

async function examineWebhooks({ sql }: Patient) {
  const { all, disabled, failing, seconds } = await readOne(sql<
    { all: number; disabled: number; failing: number; seconds: number }[]
  >`
    select count(*)::int as all, count(disabled_at)::int as disabled,
      count(*) filter (where disabled_at is null and failing_since < now() - interval '10 minutes')::int as failing,
      coalesce(extract(epoch from now() - min(failing_since) filter (where disabled_at is null)), 0)::float8 as seconds
    from webhook_endpoints`)
  const found = `${count(all, 'webhook endpoint')}, ${disabled} disabled, ${failing} without a success for ten minutes`
  if (disabled + failing === 0) return info(found)
  const since = failing > 0 ? `; the longest for ${formatSpan(seconds)}` : ''
  return warn(
    found + since,
    'mend the receiver, then POST /v1/webhook-endpoints/{id}/enable and …/replay; see "Webhooks" in docs/operations.md',
  )
}

async function examineAccounts({ sql, config }: Patient) {
  const codes = config.accounts.map(({ merchantCode }) => merchantCode)
  const rows = await sql<{ code: string; due: boolean; refunds: boolean }[]>`
    select * from (
      select m.merchant_code as code,
        exists (select from transactions as t where t.merchant_code = m.merchant_code and t.due_at is not null) as due,
        exists (select from refunds as r where r.merchant_code = m.merchant_code and ${sql.unsafe(isUnendedSql('r'))}) as refunds
      from merchant_accounts as m where m.merchant_code <> all (${codes})) as gone
    where due or refunds`
  if (rows.length === 0) return info(`${count(codes.length, 'account')} in the settings`)
  return rows.flatMap(({ code, refunds }) =>
    warn(
      `the account ${code} is no longer in the settings, and ${refunds ? 'refunds' : 'transactions'} of it wait for the gateway's answer`,
      'put it back until they have ended; see "An account that leaves" in docs/operations.md',
    ),
  )
}

async function examineKeys({ sql }: Patient) {
  const { ending } = await readOne(sql<{ ending: number }[]>`
    select count(*)::int as ending from actors as k where ${sql.unsafe(EXPIRING_SOON)}`)
  if (ending === 0) return info('no API key ends within seven days without a successor')
  return warn(
    `${count(ending, 'API key ends', 'API keys end')} within seven days, and no other replaces it`,
    'list them with keys list, and make successors with keys rotate',
  )
}

async function examineRetention({ sql, config }: Patient) {
  const { days } = await readOne(sql<{ days: number }[]>`
    select coalesce(extract(epoch from now() - min(at)) / 86400, 0)::float8 as days
    from (select at from events order by id limit 1) as oldest`)
  const found = `the oldest event is ${count(Math.floor(days), 'day')} old, of at most ${config.RETENTION_DAYS}`
  if (days <= config.RETENTION_DAYS + 2) return info(found)
  return warn(found, 'start a worker: what is older is deleted by its passes')
}
