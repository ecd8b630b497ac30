import { hashKey } from '../access/keys.ts'
import { prepareAccess } from '../access/setting-keys.ts'
import { findShortSecrets, LEAST_SECRET } from '../config/accounts.ts'
import { type Config, readConfig } from '../config/config.ts'
import { listWithoutEffect } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'
import { prepareSchema } from '../db/migrate.ts'
import { readSchemaName } from '../db/migration-state.ts'
import { computeKeyId } from '../platform/crypto/encryption.ts'
import { startEmbeddedPostgres } from '../platform/postgres/embedded.ts'
import { inSchema } from '../platform/postgres/hosts.ts'
import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { createLog, type Log } from '../platform/telemetry/log.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import { startService } from '../service.ts'
import { COMMIT, PACKAGE } from '../version.ts'

/**
 * Starts everything that the settings ask for, and returns once it runs. A stop, also during the start, ends the
 * process.
 * @param onSignal attaches what a signal that stops the process does
 * @param env the environment variables, by default those of this process
 * @throws ConfigError, or the error of the part that could not start, after stopping the others
 */
export async function start(
  onSignal: (stop: (signal: NodeJS.Signals) => void) => void,
  env?: Environment,
): Promise<void> {
  const config = readConfig(env)
  const log = createLog(config.LOG_LEVEL)
  warnOfSettings(config, log)
  tolerateLostConnections((err) => {
    if (noteOutage(log, err, 'connections')) return
    log.warn({ err }, 'a database connection was lost while it was being opened')
  })
  const parts = createParts()
  const stop = createStop(parts, config.DRAIN_MS, log)
  onSignal(stop.request)
  try {
    await startParts(config, log, parts)
  } catch (error) {
    // Once a stop has begun, it is the cause of any failure.
    const stopped = stop.begun()
    if (stopped) return await stopped
    await parts.stop()
    throw error
  }
}

/** Starts the parts in order, and adds each to `parts` at once, so that it is stopped if a later one fails. */
async function startParts(config: Config, log: Log, parts: Parts): Promise<void> {
  const server = config.DATABASE_URL ?? (await startDatabase(config, log, parts))
  const databaseUrl = inSchema(server, config.DATABASE_SCHEMA)
  await prepareSchema(databaseUrl, { mode: config.MIGRATE, log })
  const demo = config.demo ? await import('../demo.ts') : undefined
  const sandbox = config.GATEWAY_BASE_URL ? undefined : await demo?.startDemoGateway(config)
  if (sandbox) parts.add(sandbox)
  const gatewayBaseUrl = config.GATEWAY_BASE_URL ?? sandbox?.url
  const encryptionKey =
    config.DATA_ENCRYPTION_KEY ?? demo?.loadOrCreateEncryptionKey(config.DATA_DIR)
  if (!gatewayBaseUrl || !encryptionKey) throw new Error('a setting is not set, and none is made')
  const made = { config, databaseUrl, gatewayBaseUrl, encryptionKey, log }
  const service = await startService({ ...made, prepare: prepareAccess })
  parts.add(service)
  const { url, metricsUrl } = service
  const { sql } = service.ctx.db
  await warnOfFewConnections(config, sql, log)
  await noteCitus(sql, log)
  const description = await describeStart({ config, sql, gatewayBaseUrl, encryptionKey })
  log.info({ url, metricsUrl, ...description }, 'ready')
  if (demo) await demo.presentDemo(service, sandbox)
}

async function startDatabase(config: Config, log: Log, parts: Parts): Promise<string> {
  const database = await startEmbeddedPostgres({
    dataDir: config.DATA_DIR,
    log: (line, isBroken) => (isBroken ? log.error(line) : log.info(line)),
  })
  parts.add(database)
  return database.url
}

/** Logs what is doubtful about valid settings. The demo's signing secret is public anyway. */
function warnOfSettings(config: Config, log: Log): void {
  if (config.TRUSTED_PROXIES.some(({ prefix }) => prefix === 0)) {
    log.warn(
      'TRUSTED_PROXIES trusts every address, so that anybody can choose the address that is logged, allowed and limited; set it to the addresses of your proxies',
    )
  }
  const unused = listWithoutEffect()
  if (unused.length > 0) {
    log.warn(
      { settings: unused },
      'these settings have no effect: people sign in with the links of cli people link, and everything is read from DATABASE_URL',
    )
  }
  // A random key has many different characters.
  if (config.API_KEY && new Set(config.API_KEY).size < 10) {
    log.warn('API_KEY may be guessed; set it to the output of: openssl rand -hex 32')
  }
  for (const weak of config.demo ? [] : findShortSecrets(config.accounts)) {
    log.warn(
      weak,
      `this signing secret has less than ${LEAST_SECRET} characters, so that it may be guessed from one signed message; have the gateway issue one of 32 random hexadecimal digits`,
    )
  }
}

/** Connections of a process beside its pool: one listens, one looks up keys. */
const BESIDE_POOL = 2

/** Never rejects, as the process serves already. */
async function warnOfFewConnections(
  { DATABASE_POOL: pool }: Config,
  sql: Sql,
  log: Log,
): Promise<void> {
  const [row] = await sql<{ most: number }[]>`
    select current_setting('max_connections')::int
      - current_setting('superuser_reserved_connections')::int as most`.catch(() => [])
  if (!row || pool + BESIDE_POOL <= row.most) return
  log.warn(
    { pool, beside: BESIDE_POOL, most: row.most },
    'DATABASE_POOL is more than the connections that the database allows, less the two that each process has beside it; lower it, or raise max_connections of the server',
  )
}

/** Never rejects, as the process serves already. */
async function noteCitus(sql: Sql, log: Log): Promise<void> {
  const [citus] = await sql<{ version: string }[]>`
    select extversion as version from pg_extension where extname = 'citus'`.catch(() => [])
  if (citus) log.info({ citus: citus.version }, 'Citus plans statements with their parameters')
}

type Started = { config: Config; sql: Sql; gatewayBaseUrl: string; encryptionKey: string }

/**
 * Describes a successful start for the log, with the ids of keys and no secret. Never rejects: if the database has
 * been lost meanwhile, what it stores is left out.
 */
export async function describeStart({ config, sql, gatewayBaseUrl, encryptionKey }: Started) {
  const { API_KEY, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = config
  const hash = API_KEY === undefined ? null : hashKey(API_KEY)
  const reading = Promise.all([
    readSchemaName(sql),
    sql<{ id: string }[]>`select id from actors where hash = ${hash}`,
  ])
  const [schema, keys] = await reading.catch(() => [undefined, []] as const)
  const identify = (key: string) => computeKeyId(Buffer.from(key, 'base64'))
  return {
    version: PACKAGE.version,
    commit: COMMIT,
    schema,
    role: config.ROLE,
    demo: config.demo,
    accounts: config.accounts.map(({ merchantCode }) => merchantCode),
    gateway: new URL(gatewayBaseUrl).host,
    keyIds: {
      dataEncryption: identify(encryptionKey),
      dataEncryptionPrevious: previous === undefined ? undefined : identify(previous),
      api: keys[0]?.id,
    },
  }
}

/** A part of this process that has to be stopped. `drain` only makes it report that it is not ready. */
export type Part = { drain?(): void; stop(): Promise<void> }

type Parts = ReturnType<typeof createParts>

export function createParts() {
  const running: Part[] = []
  let stopped: Promise<void> | undefined
  async function stopAll(): Promise<void> {
    for (let part = running.pop(); part; part = running.pop()) await part.stop()
  }
  return {
    /** Adds a started part. If a stop has begun, it is stopped as well. */
    add(part: Part): void {
      running.push(part)
      if (stopped) stopped = stopped.then(stopAll)
    },
    list: (): readonly Part[] => running,
    /** Stops the parts, the last one first. It may be called again. */
    stop(): Promise<void> {
      stopped ??= stopAll()
      return stopped
    },
  }
}

/** This long after `DRAIN_MS` has passed, the process exits even if it has not stopped cleanly (ms). */
const STOP_TIMEOUT_MS = 9_500

/**
 * Creates a stop that, however often it is requested, drains and stops the parts once and then exits with 0.
 * @param drainMs how long everything is still served while the process reports that it is not ready; a process that
 *   has not started to serve skips this
 */
export function createStop(parts: Parts, drainMs: number, log: Log) {
  let begun: Promise<void> | undefined
  async function drainAndStop(signal: NodeJS.Signals): Promise<void> {
    const drained = parts.list().filter((part) => part.drain)
    for (const part of drained) part.drain?.()
    if (drainMs > 0 && drained.length > 0) {
      log.info({ signal, drainMs }, 'draining: not ready any more, everything is still served')
      await new Promise((resolve) => setTimeout(resolve, drainMs))
    }
    log.info({ signal }, 'stopping: finishing work in flight, accepting no new work')
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref()
    await parts.stop()
    log.info('stopped')
  }
  return {
    request(signal: NodeJS.Signals): void {
      begun ??= drainAndStop(signal)
        .catch((err: unknown) => {
          log.error({ err }, 'the stop failed; work in flight is resumed at the next start')
        })
        .then(() => process.exit(0))
    },
    begun: () => begun,
  }
}
