import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { openDatabase, requireTimeZone } from '../db/client.ts'
import { readDataKeys } from '../db/data-keys.ts'
import { describeStop, findStop } from '../db/installation.ts'
import {
  countPending,
  MIGRATE_COMMAND,
  MigrationError,
  readPendingMigrations,
  readSchemaName,
  requireKnownSchema,
} from '../db/migration-state.ts'
import { computeKeyId } from '../platform/crypto/encryption.ts'
import { findEmbeddedPostgres, requireStartable } from '../platform/postgres/embedded.ts'
import { EmbeddedPostgresError } from '../platform/postgres/embedded-binaries.ts'
import { parseDatabaseUrl } from '../platform/postgres/hosts.ts'
import { findWeakCommits } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { explainError } from './explain-error.ts'

/** What is checked, in the order of the output. */
export type CheckName =
  | 'settings'
  | 'database'
  | 'schema'
  | 'restore'
  | 'key'
  | 'clock'
  | 'gateway'
  | 'tokens'

/** The result of a check. `detail` is one line: what was found, and after a failure what to do; it holds no secret. */
export type Finding = {
  name: CheckName
  /** `skipped`: there is nothing to check, or an earlier check failed that this one depends on. */
  status: 'ok' | 'failed' | 'skipped'
  detail: string
}

/** How far the clocks of this machine and of the database may be apart (ms). */
export const MAX_CLOCK_SKEW_MS = 30_000

/** The time of the database, read between two times of this machine's clock (ms since 1970). */
export type ClockReading = { databaseMs: number; beforeMs: number; afterMs: number }

/** Compares the clocks. The time of the round trip counts for neither. */
export function checkClock({ databaseMs, beforeMs, afterMs }: ClockReading): Finding {
  const aheadMs = beforeMs > databaseMs ? beforeMs - databaseMs : Math.min(0, afterMs - databaseMs)
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1)
  const where = aheadMs < 0 ? 'behind' : 'ahead of'
  if (Math.abs(aheadMs) <= MAX_CLOCK_SKEW_MS) {
    const detail = `this machine is ${seconds} s ${where} the database`
    return { name: 'clock', status: 'ok', detail: aheadMs === 0 ? 'as the database' : detail }
  }
  const detail = `this machine is ${seconds} s ${where} the database, and at most ${MAX_CLOCK_SKEW_MS / 1000} s are allowed: synchronise both clocks (NTP)`
  return { name: 'clock', status: 'failed', detail }
}

/** The oldest server that docs/operations.md names. */
const MIN_MAJOR = 15

const DEPENDENT: readonly CheckName[] = ['schema', 'restore', 'key', 'clock']

/**
 * Checks the database, its schema, whether the encryption key opens what it stores, and its clock.
 * @param timeoutMs for all of it
 */
export async function checkDatabase(config: Config, timeoutMs: number): Promise<Finding[]> {
  const found = findDatabase(config)
  if ('finding' in found) return [found.finding, ...skipDependent(found.finding)]
  const done = new AbortController()
  const database = openDatabase(found.url, 1)
  const { sql, close } = database.openReads(1)
  try {
    const late = sleep(timeoutMs, undefined, { signal: done.signal }).catch(() => undefined)
    const findings = await Promise.race([
      checkServer({ writes: database.sql, sql, url: found.url }, config),
      late,
    ])
    if (findings) return findings
    return fail(
      `The database at DATABASE_URL (${describeAddress(found.url)}) did not answer within ${timeoutMs} ms: check its address, firewalls on the way, and whether a server runs behind a proxy there`,
    )
  } catch (error) {
    const reason = explainError(error).replace(/^Error: |\n.*/gs, '')
    return fail(`${reason} (${describeAddress(found.url)})`)
  } finally {
    done.abort()
    await Promise.all([close(), database.close()])
  }
}

/** Finds the server to check; an embedded one only if it is running, because it is not started for a check. */
function findDatabase(config: Config): { url: string } | { finding: Finding } {
  if (config.DATABASE_URL !== undefined) return { url: config.DATABASE_URL }
  const name = 'database'
  try {
    const found = findEmbeddedPostgres(config.DATA_DIR)
    if (typeof found === 'object') return found
    requireStartable(config.DATA_DIR)
    const action = found === 'none' ? 'creates' : 'starts'
    const detail = `DATABASE_URL is not set: the start ${action} an embedded PostgreSQL in ${config.DATA_DIR}`
    return { finding: { name, status: 'skipped', detail } }
  } catch (error) {
    if (!(error instanceof EmbeddedPostgresError)) throw error
    return { finding: { name, status: 'failed', detail: error.message } }
  }
}

/**
 * @param options `writes` opens a session only with a server that accepts writes, and `sql` one that can only read
 */
async function checkServer(
  { writes, sql, url }: { writes: Sql; sql: Sql; url: string },
  config: Config,
): Promise<Finding[]> {
  const weak = await findWeakCommits(writes)
  const beforeMs = Date.now()
  const [server] = await sql<{ version: string; major: number; databaseMs: number }[]>`
    select split_part(current_setting('server_version'), ' ', 1) as version,
      current_setting('server_version_num')::int / 10000 as major,
      extract(epoch from clock_timestamp())::float8 * 1000 as "databaseMs"`
  const afterMs = Date.now()
  if (!server) throw new Error('the database returned no version')
  const { version, major, databaseMs } = server
  const clock = checkClock({ databaseMs, beforeMs, afterMs })
  const place = `PostgreSQL ${version} at ${describeAddress(url)}`
  if (major < MIN_MAJOR) {
    const detail = `${place}: version ${MIN_MAJOR} or newer is required`
    const finding: Finding = { name: 'database', status: 'failed', detail }
    return [finding, ...skipDependent(finding).filter(({ name }) => name !== 'clock'), clock]
  }
  if (weak !== undefined) {
    return fail(
      `${place}: synchronous_commit is ${weak} in its sessions, although they ask for on, so that an acknowledged commit may be lost: connect without the pooler that drops what they ask for, or end what changes it`,
    )
  }
  const zone = await checkTimeZone(sql, config)
  const schema = await checkSchema(sql, config)
  const restore = await checkRestore(writes)
  const key = await checkKey(sql, config)
  const database: Finding = zone ?? { name: 'database', status: 'ok', detail: place }
  return [database, schema, restore, key, clock]
}

/** Returns a finding if the database does not know the time zone of the settings: the start would be refused. */
async function checkTimeZone(sql: Sql, config: Config): Promise<Finding | undefined> {
  try {
    await requireTimeZone(sql, config)
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { name: 'database', status: 'failed', detail: error.lines.join('; ') }
  }
}

function fail(detail: string): Finding[] {
  const finding: Finding = { name: 'database', status: 'failed', detail }
  return [finding, ...skipDependent(finding)]
}

function skipDependent({ status }: Finding): Finding[] {
  const reason = status === 'failed' ? 'the database cannot be used' : 'there is no database yet'
  return DEPENDENT.map((name) => ({ name, status: 'skipped', detail: `not checked: ${reason}` }))
}

/** Returns the servers and the name of the database, without the user and the password. */
function describeAddress(url: string): string {
  const hosts = parseDatabaseUrl(url)?.hosts ?? []
  const servers = hosts.map(({ host, port = 5432 }) =>
    host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
  )
  return servers.length > 0 ? servers.join(',') : 'the server of PGHOST'
}

/** Compares the migrations that the database has with those of this version. */
export async function checkSchema(
  sql: Sql,
  { MIGRATE }: Pick<Config, 'MIGRATE'>,
): Promise<Finding> {
  const name = 'schema'
  const refusal = await requireKnownSchema(sql).catch((error: unknown) => {
    if (error instanceof MigrationError) return error.message
    throw error
  })
  if (refusal !== undefined) return { name, status: 'failed', detail: refusal }
  const schema = await readSchemaName(sql)
  const pending = await readPendingMigrations(sql)
  if (pending.length === 0) return { name, status: 'ok', detail: schema ?? 'empty' }
  const what = `${countPending(pending)}, up to ${pending.at(-1)}`
  if (MIGRATE === 'auto') return { name, status: 'ok', detail: `${what}: the start applies them` }
  const detail = `${what}, and MIGRATE is off: run ${MIGRATE_COMMAND}, or set MIGRATE=auto`
  return { name, status: 'failed', detail }
}

/** Says whether something would be sent. The start succeeds all the same: notifications are stored. */
export async function checkRestore(sql: Sql): Promise<Finding> {
  const name = 'restore'
  const [table] = await sql<{ name: string | null }[]>`select to_regclass('installation') as name`
  const stop = table?.name ? await findStop(sql) : undefined
  return { name, status: 'ok', detail: stop ? describeStop(stop) : 'the server of before' }
}

/** Checks that the encryption key opens what the database stores. */
export async function checkKey(sql: Sql, config: Config): Promise<Finding> {
  const name = 'key'
  const { DATA_ENCRYPTION_KEY: current, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = config
  if (current === undefined) {
    const detail = `DATA_ENCRYPTION_KEY is not set: the demo keeps one in ${config.DATA_DIR}`
    return { name, status: 'skipped', detail }
  }
  const id = computeKeyId(Buffer.from(current, 'base64'))
  try {
    const keys = await readDataKeys(sql, { current, previous })
    const what = keys.length === 0 ? 'nothing is stored yet' : 'opens what is stored'
    return { name, status: 'ok', detail: `${id} ${what}` }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { name, status: 'failed', detail: error.lines.join('; ') }
  }
}
