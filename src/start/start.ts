import { hashKey } from '../access/keys.ts'
import { prepareAccess } from '../access/prepare-access.ts'
import { findShortSecrets, LEAST_SECRET } from '../config/accounts.ts'
import { type Config, readConfig } from '../config/config.ts'
import type { Environment } from '../config/settings.ts'
import { prepareSchema } from '../db/migrate.ts'
import { readSchemaName } from '../db/migration-state.ts'
import { computeKeyId } from '../platform/crypto/encryption.ts'
import { startEmbeddedPostgres } from '../platform/postgres/embedded.ts'
import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { createLog, type Log } from '../platform/telemetry/log.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import { startService } from '../service.ts'
import { COMMIT, PACKAGE } from '../version.ts'
import { explainPort } from './explain-error.ts'
import { createParts, createStop, type Parts } from './stop.ts'

/**
 * Starts everything that the settings ask for, and returns while it runs, or when a stop that came during the start has
 * ended; a stop ends the process.
 * @param onSignal attaches what a signal that stops the process does
 * @param env the environment variables; this process's own if left out
 * @throws ConfigError, or the error of the part that could not start, after stopping the others
 */
export async function start(
  onSignal: (stop: () => void) => void,
  env?: Environment,
): Promise<void> {
  const config = readConfig(env)
  const log = createLog(config.LOG_LEVEL)
  warnOfSettings(config, log)
  const parts = createParts()
  tolerateLostConnections((err) => {
    if (noteOutage(log, err, 'connections')) return
    log.warn({ err }, 'a database connection was lost while it was being opened')
  })
  const stop = createStop(parts, config.DRAIN_MS, log)
  onSignal(stop.request)
  try {
    await startParts(config, log, parts)
  } catch (error) {
    // What fails after a stop has begun fails because of it.
    const stopped = stop.begun()
    if (stopped) return await stopped
    await parts.stop()
    throw explainPort(error, config)
  }
}

/** Starts the parts in order. What was started is added to `parts` at once, also when a later part fails. */
async function startParts(config: Config, log: Log, parts: Parts): Promise<void> {
  const databaseUrl = config.DATABASE_URL ?? (await startDatabase(config, log, parts))
  await prepareSchema(databaseUrl, { mode: config.MIGRATE, log })
  const demo = config.demo ? await import('../demo.ts') : undefined
  const sandbox = config.GATEWAY_BASE_URL ? undefined : await demo?.startDemoGateway(config)
  if (sandbox) parts.add(sandbox)
  const gatewayBaseUrl = config.GATEWAY_BASE_URL ?? sandbox?.url
  if (!gatewayBaseUrl) throw new Error('GATEWAY_BASE_URL is not set')
  const encryptionKey =
    config.DATA_ENCRYPTION_KEY ?? demo?.loadOrCreateEncryptionKey(config.DATA_DIR)
  if (!encryptionKey) throw new Error('DATA_ENCRYPTION_KEY is not set')
  const service = await startService({
    config,
    databaseUrl,
    gatewayBaseUrl,
    encryptionKey,
    log,
    prepare: prepareAccess,
  })
  parts.add(service)
  const { url, metricsUrl } = service
  const { sql } = service.ctx
  await warnOfFewConnections(config, sql, log)
  const description = await describeStart({ config, sql, gatewayBaseUrl, encryptionKey })
  log.info({ url, metricsUrl, ...description }, 'ready')
  if (demo) await demo.presentDemo(service, sandbox)
}

async function startDatabase(config: Config, log: Log, parts: Parts): Promise<string> {
  const database = await startEmbeddedPostgres({
    dataDir: config.DATA_DIR,
    log: (line) => log.info(line),
  })
  parts.add(database)
  return database.url
}

/** Logs what is doubtful about valid settings. The signing secret of the demo is published. */
function warnOfSettings(config: Config, log: Log): void {
  if (config.TRUSTED_PROXIES.some(({ prefix }) => prefix === 0)) {
    log.warn(
      'TRUSTED_PROXIES trusts every address, so that anybody can choose the address that is logged, allowed and limited; set it to the addresses of your proxies',
    )
  }
  if (config.demo) return
  for (const weak of findShortSecrets(config.accounts)) {
    log.warn(
      weak,
      `this signing secret has less than ${LEAST_SECRET} characters, so that it may be guessed from one signed message; have the gateway issue one of 32 random hexadecimal digits`,
    )
  }
}

/** Warns of a pool that the server cannot fill. Never rejects: the process serves already. */
async function warnOfFewConnections(
  { DATABASE_POOL: pool }: Config,
  sql: Sql,
  log: Log,
): Promise<void> {
  const reading = sql<{ most: number }[]>`
    select current_setting('max_connections')::int
      - current_setting('superuser_reserved_connections')::int as most`
  const [row] = await reading.catch(() => [])
  if (!row || pool <= row.most) return
  log.warn(
    { pool, most: row.most },
    'DATABASE_POOL is more than the connections that the database allows; lower it, or raise max_connections of the server',
  )
}

/** What runs, for the line that is logged when everything does. Of keys it has the ids, of no secret anything. */
export type StartDescription = {
  version: string
  commit: string | undefined
  /** The newest migration that the database has; undefined if it could not be read. */
  schema: string | undefined
  role: Config['ROLE']
  demo: boolean
  accounts: readonly string[]
  /** The gateway's host, with its port if that is not the usual one. */
  gateway: string
  keyIds: {
    dataEncryption: string
    dataEncryptionPrevious: string | undefined
    /** Of the key of `API_KEY`, as `cli keys list` shows it. */
    api: string | undefined
  }
}

type Started = {
  config: Config
  sql: Sql
  gatewayBaseUrl: string
  /** 32 bytes in Base64. */
  encryptionKey: string
}

/** Describes a start that succeeded. Never rejects: without the database, what it stores is left out. */
export async function describeStart(started: Started): Promise<StartDescription> {
  const { config, sql, gatewayBaseUrl, encryptionKey } = started
  const { DATA_ENCRYPTION_KEY_PREVIOUS: previous } = config
  // The process serves already: a connection that is lost now must not end it.
  const reading = Promise.all([readSchemaName(sql), findKeyId(sql, config.API_KEY)])
  const [schema, api] = await reading.catch(() => [undefined, undefined] as const)
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
      api,
    },
  }
}

function identify(key: string): string {
  return computeKeyId(Buffer.from(key, 'base64'))
}

async function findKeyId(sql: Sql, text: string | undefined): Promise<string | undefined> {
  if (text === undefined) return undefined
  const [row] = await sql<{ id: string }[]>`select id from api_keys where hash = ${hashKey(text)}`
  return row?.id
}
