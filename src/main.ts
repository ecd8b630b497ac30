import { prepareAccess } from './access/prepare-access.ts'
import { type Config, readConfig } from './config/config.ts'
import { ConfigError } from './config/config-error.ts'
import { findWeakSecrets, STRONG_BITS } from './config/secret-strength.ts'
import { migrateDatabase } from './db/migrate.ts'
import { EmbeddedPostgresError } from './platform/postgres/embedded/error.ts'
import { startEmbeddedPostgres } from './platform/postgres/embedded/start.ts'
import { isDatabaseUnavailable, READ_ONLY } from './platform/postgres/errors.ts'
import { createLog, type Log } from './platform/telemetry/log.ts'
import { startService } from './service.ts'

/** A part of this process that has to be stopped; the last one started is stopped first. */
type Part = { stop(): Promise<void> }

/** After this time the process exits even if it has not stopped cleanly (ms). */
const STOP_TIMEOUT_MS = 9_500

async function main(): Promise<void> {
  const config = readConfig()
  const log = createLog(config.LOG_LEVEL)
  const parts: Part[] = []
  // If a connection is lost while it opens, the driver leaves a rejection that cannot be caught
  // (porsager/postgres 1223). The query that waits for the connection gets its own error.
  process.on('unhandledRejection', (reason) => {
    if (!isDatabaseUnavailable(reason)) throw reason
    log.warn({ err: reason }, 'a database connection was lost while it was being opened')
  })
  const stop = createStopHandler(parts, log)
  // `on`, not `once`: Ctrl-C under npm arrives twice, and the second signal must not abort the stop.
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  try {
    await startParts(config, log, parts)
  } catch (error) {
    await stopParts(parts)
    throw error
  }
}

async function startParts(config: Config, log: Log, parts: Part[]): Promise<void> {
  warnOfWeakSecrets(config, log)
  const databaseUrl = config.DATABASE_URL ?? (await startDatabase(config, log, parts))
  await migrateDatabase(databaseUrl)
  const demo = config.demo ? await import('./demo.ts') : undefined
  const sandbox = config.GATEWAY_BASE_URL ? undefined : await demo?.startDemoGateway(config)
  if (sandbox) parts.push(sandbox)
  const gatewayBaseUrl = config.GATEWAY_BASE_URL ?? sandbox?.url
  if (!gatewayBaseUrl) throw new Error('GATEWAY_BASE_URL is not set')
  const encryptionKey =
    config.DATA_ENCRYPTION_KEY ?? demo?.loadOrCreateEncryptionKey(config.DATA_DIR)
  if (!encryptionKey) throw new Error('DATA_ENCRYPTION_KEY is not set')
  const service = await startService({
    ...{ config, databaseUrl, gatewayBaseUrl, encryptionKey, log },
    prepare: prepareAccess,
  })
  parts.push(service)
  const { url, metricsUrl } = service
  log.info({ url, metricsUrl, role: config.ROLE }, 'ready')
  if (demo) await demo.presentDemo(service, sandbox)
}

/** Names the accounts whose signing secret may be guessed from one signed message. The demo's own is published. */
function warnOfWeakSecrets({ accounts, demo }: Config, log: Log): void {
  if (demo) return
  for (const weak of findWeakSecrets(accounts)) {
    log.warn(
      weak,
      `this signing secret has at most ${weak.bits} bits, so that it may be guessed from one signed message; have the gateway issue one of ${STRONG_BITS} random bits, for example 32 hexadecimal digits`,
    )
  }
}

async function startDatabase(config: Config, log: Log, parts: Part[]): Promise<string> {
  const database = await startEmbeddedPostgres({
    dataDir: config.DATA_DIR,
    log: (line) => log.info(line),
  })
  parts.push(database)
  return database.url
}

function createStopHandler(parts: Part[], log: Log) {
  let isStopping = false
  return () => {
    if (isStopping) return
    isStopping = true
    log.info('stopping: finishing work in flight, accepting no new work')
    setTimeout(() => process.exit(0), STOP_TIMEOUT_MS).unref()
    stopParts(parts).then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'the stop failed; work in flight is resumed at the next start')
        process.exit(0)
      },
    )
  }
}

async function stopParts(parts: Part[]): Promise<void> {
  for (const part of parts.splice(0).reverse()) await part.stop()
}

/** Describes an error in lines an operator can act on; an unexpected error in full. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) {
    return `The settings are invalid:\n${error.lines.map((line) => `  ${line}`).join('\n')}`
  }
  if (error instanceof EmbeddedPostgresError) return error.message
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE' && error instanceof Error) {
    return `${error.message}: stop the program that uses this port, or set PORT (METRICS_PORT for the metrics, SANDBOX_PORT for the sandbox)`
  }
  if (code === '28P01' || code === '28000' || code === '3D000') {
    return `The database at DATABASE_URL refused the connection (${code}): check the user, password and database name`
  }
  if (code === READ_ONLY) {
    return `No server of DATABASE_URL accepts writes (${code}): promote a standby, or add the primary to the list of hosts`
  }
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT') {
    return `The database at DATABASE_URL is unreachable (${code}): check its address and whether it is running`
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

main().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`)
  process.exit(1)
})
