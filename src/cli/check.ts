import { type Config, readConfig } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'
import { openDatabase, requireTimeZone } from '../db/client.ts'
import { readDataKeys } from '../db/data-keys.ts'
import { describeStop, findStop, hasInstallation } from '../db/installation.ts'
import {
  countPending,
  MIGRATE_COMMAND,
  planMigrations,
  readSchemaName,
} from '../db/migration-state.ts'
import { TimeoutError, withTimeout } from '../platform/concurrency/timing.ts'
import { computeKeyId } from '../platform/crypto/encryption.ts'
import { findEmbeddedPostgres, requireStartable } from '../platform/postgres/embedded.ts'
import { inSchema, parseDatabaseUrl } from '../platform/postgres/hosts.ts'
import { findWeakCommits } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { COMMIT, PACKAGE } from '../version.ts'
import { type Add, checkHosts, type Finding } from './check-hosts.ts'
import { explainError } from './explain.ts'

/** A check found something wrong, and the message says what to do about it. */
class CheckError extends Error {}

/** The limit for the database and for each host (ms). With closing the connections it stays below 10 s. */
const TIMEOUT_MS = 7_500

/**
 * Checks whether a start with these settings would succeed. Nothing is bound, written or sent to the gateway.
 * @param options `onFinding` is called with each finding as it comes
 */
export async function runCheck(
  env?: Environment,
  options: { timeoutMs?: number; onFinding?: (finding: Finding) => void } = {},
) {
  const { timeoutMs = TIMEOUT_MS, onFinding } = options
  const checks: Finding[] = []
  const add: Add = (found) => {
    checks.push(found)
    onFinding?.(found)
  }
  try {
    const config = readConfig(env)
    const codes = config.accounts.map(({ merchantCode }) => merchantCode)
    const mode = config.demo ? 'demo mode' : 'production'
    const detail = `${mode}, role ${config.ROLE}, accounts ${codes.join(', ')}`
    add({ name: 'settings', status: 'ok', detail })
    // In parallel, so that none waits for another.
    await Promise.all([checkDatabase(config, timeoutMs, add), checkHosts(config, timeoutMs, add)])
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const detail of error.lines) add({ name: 'settings', status: 'failed', detail })
    const detail = 'not checked, because the settings are invalid'
    for (const name of [...Object.keys(IN_DATABASE), 'gateway'])
      add({ name, status: 'skipped', detail })
  }
  const ok = checks.every(({ status }) => status !== 'failed')
  return { ok, version: PACKAGE.version, commit: COMMIT, checks }
}

const SHOWN = { ok: 'ok', failed: 'FAIL', skipped: 'skip' }

/** Formats a finding as one line. Control characters could break it, or control the terminal. */
export function presentFinding({ name, status, detail }: Finding): string {
  return `${SHOWN[status].padEnd(5)} ${name.padEnd(9)} ${detail.replace(/\p{Cc}/gu, ' ')}\n`
}

/** `writes` connects only to a server that accepts writes; the sessions of `sql` can only read. */
type Checked = { writes: Sql; sql: Sql; place: string; config: Config }

/** The checks of the database, in order. Each returns what it found, or throws what is wrong. */
const IN_DATABASE: Readonly<
  Record<string, (checked: Checked) => Promise<string | { skipped: string }>>
> = {
  database: checkServer,
  schema: checkSchema,
  restore: checkRestore,
  key: checkKey,
  clock: checkClock,
}

async function checkDatabase(config: Config, timeoutMs: number, add: Add): Promise<void> {
  const skip = (name: string, why: string) =>
    add({ name, status: 'skipped', detail: `not checked: ${why}` })
  const url = findCheckedDatabase(config)
  if (typeof url === 'object') {
    const { status, detail, why } = url
    for (const name of Object.keys(IN_DATABASE)) {
      if (name === 'database') add({ name, status, detail })
      else skip(name, why)
    }
    return
  }
  const place = describeAddress(url)
  const database = openDatabase(url, 1)
  const { sql, close } = database.openReads(1)
  const until = performance.now() + timeoutMs
  let isUsable = true
  try {
    for (const [name, check] of Object.entries(IN_DATABASE)) {
      if (!isUsable) {
        skip(name, 'the database cannot be used')
        continue
      }
      try {
        const checked = check({ writes: database.sql, sql, place, config })
        const found = await withTimeout(until - performance.now(), checked)
        if (typeof found === 'string') add({ name, status: 'ok', detail: found })
        else add({ name, status: 'skipped', detail: found.skipped })
      } catch (error) {
        add({ name, status: 'failed', detail: explainFailure(error, place, timeoutMs) })
        isUsable = name !== 'database'
      }
    }
  } finally {
    await Promise.all([close(), database.close()])
  }
}

function explainFailure(error: unknown, place: string, timeoutMs: number): string {
  if (error instanceof ConfigError) return error.lines.join('; ')
  if (error instanceof CheckError) return error.message
  if (error instanceof TimeoutError) {
    return `The database at DATABASE_URL (${place}) did not answer within ${timeoutMs} ms: check its address, firewalls on the way, and whether a server runs behind a proxy there`
  }
  return `${explainError(error).replace(/^Error: |\n.*/gs, '')} (${place})`
}

/** Finds the server to check. An embedded server is not started for a check. */
export function findCheckedDatabase({ DATABASE_URL, DATABASE_SCHEMA, DATA_DIR }: Config) {
  if (DATABASE_URL !== undefined) return inSchema(DATABASE_URL, DATABASE_SCHEMA)
  try {
    const found = findEmbeddedPostgres(DATA_DIR)
    if (typeof found === 'object') return inSchema(found.url, DATABASE_SCHEMA)
    requireStartable(DATA_DIR)
    const [action, why] =
      found === 'none'
        ? ['creates', 'there is no database yet']
        : ['starts', 'the embedded database is not running; check again while the service runs']
    const detail = `DATABASE_URL is not set: the start ${action} an embedded PostgreSQL in ${DATA_DIR}`
    return { status: 'skipped' as const, detail, why }
  } catch (error) {
    const why = 'the database cannot be used'
    return { status: 'failed' as const, detail: explainError(error), why }
  }
}

/** Lists the servers of the database, without the user and the password. */
function describeAddress(url: string): string {
  const hosts = parseDatabaseUrl(url)?.hosts ?? []
  const servers = hosts.map(({ host, port = 5432 }) =>
    host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
  )
  return servers.join(',') || 'the server of PGHOST'
}

/** The oldest server that docs/operations.md names. */
const MIN_MAJOR = 15

async function checkServer({ writes, sql, place, config }: Checked): Promise<string> {
  const weak = await findWeakCommits(writes)
  const [server] = await sql<{ version: string; major: number }[]>`
    select split_part(current_setting('server_version'), ' ', 1) as version,
      current_setting('server_version_num')::int / 10000 as major`
  const found = `PostgreSQL ${server?.version} at ${place}`
  if (server && server.major < MIN_MAJOR) {
    throw new CheckError(`${found}: version ${MIN_MAJOR} or newer is required`)
  }
  if (weak !== undefined) {
    throw new CheckError(
      `${found}: synchronous_commit is ${weak} in its sessions, although they ask for on, so that an acknowledged commit may be lost: connect without the pooler that drops what they ask for, or end what changes it`,
    )
  }
  await requireTimeZone(sql, config)
  return found
}

async function checkSchema({ sql, config }: Checked): Promise<string> {
  const pending = await planMigrations(sql)
  if (pending.length === 0) return (await readSchemaName(sql)) ?? 'empty'
  const isNew = !(await hasInstallation(sql))
  const what = isNew
    ? `the schema ${config.DATABASE_SCHEMA} holds no installation`
    : `${countPending(pending)}, up to ${pending.at(-1)?.name}`
  if (config.MIGRATE === 'auto') return `${what}: the start ${isNew ? 'makes one' : 'applies them'}`
  throw new CheckError(`${what}, and MIGRATE is off: run ${MIGRATE_COMMAND}, or set MIGRATE=auto`)
}

/** Says whether anything would be sent. If nothing is, the start succeeds all the same, and stores notifications. */
async function checkRestore({ writes }: Checked): Promise<string> {
  if (!(await hasInstallation(writes))) return 'nothing is stored yet'
  const stop = await findStop(writes)
  return stop ? describeStop(stop) : 'the server of before'
}

async function checkKey({ sql, config }: Checked) {
  const { DATA_ENCRYPTION_KEY: current, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = config
  if (current === undefined) {
    return { skipped: `DATA_ENCRYPTION_KEY is not set: the demo keeps one in ${config.DATA_DIR}` }
  }
  const keys = await readDataKeys(sql, { current, previous })
  const what = keys.length === 0 ? 'nothing is stored yet' : 'opens what is stored'
  return `${computeKeyId(Buffer.from(current, 'base64'))} ${what}`
}

async function checkClock({ sql }: Checked): Promise<string> {
  const beforeMs = Date.now()
  const [row] = await sql<{ ms: number }[]>`
    select extract(epoch from clock_timestamp())::float8 * 1000 as ms`
  return compareClocks({ databaseMs: row?.ms ?? 0, beforeMs, afterMs: Date.now() })
}

/** How far two clocks may be apart (ms). */
export const MAX_CLOCK_SKEW_MS = 30_000

/** Says how far this machine's clock is from another one: `1.0 s ahead of`. */
export function formatSkew(aheadMs: number): string {
  return `${(Math.abs(aheadMs) / 1000).toFixed(1)} s ${aheadMs < 0 ? 'behind' : 'ahead of'}`
}

/** Compares the time of the database with this machine's, read before and after it. All in ms. */
export function compareClocks(read: { databaseMs: number; beforeMs: number; afterMs: number }) {
  // What the round trip can explain is no difference.
  const aheadMs = Math.max(
    read.beforeMs - read.databaseMs,
    Math.min(0, read.afterMs - read.databaseMs),
  )
  const found = `this machine is ${formatSkew(aheadMs)} the database`
  if (Math.abs(aheadMs) <= MAX_CLOCK_SKEW_MS) return aheadMs === 0 ? 'as the database' : found
  throw new CheckError(
    `${found}, and at most ${MAX_CLOCK_SKEW_MS / 1000} s are allowed: synchronise both clocks (NTP)`,
  )
}
