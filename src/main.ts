import { ensureFirstKey } from './access/keys.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { isDatabaseAway } from './db/client.ts'
import { EmbeddedPostgresError } from './db/embedded/error.ts'
import { startEmbeddedPostgres } from './db/embedded/start.ts'
import { migrateDatabase } from './db/migrate.ts'
import { createLog, type Log } from './log.ts'
import { startService } from './service.ts'

/** A part that runs in this process and has to be stopped, last started first. */
type Part = { stop(): Promise<void> }

/** After this the process ends, stopped or not (ms). */
const STOP_WITHIN_MS = 9_500

async function main(): Promise<void> {
  const config = readConfig()
  const log = createLog(config.LOG_LEVEL)
  const parts: Part[] = []
  // The driver of the database rejects what nobody can catch when a connection is cut off at its very
  // start (porsager/postgres 1223). Whoever waits for the connection is told as well.
  process.on('unhandledRejection', (reason) => {
    if (!isDatabaseAway(reason)) throw reason
    log.warn({ err: reason }, 'a connection to the database was lost while it was made')
  })
  const stop = makeStop(parts, log)
  // Again and again: Ctrl-C under npm comes twice, and nobody's second signal may break off the first stop.
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
  const databaseUrl = config.DATABASE_URL ?? (await startDatabase(config, log, parts))
  await migrateDatabase(databaseUrl)
  const demo = config.demo ? await import('./demo.ts') : undefined
  const sandbox = config.GATEWAY_BASE_URL ? undefined : await demo?.startDemoGateway(config)
  if (sandbox) parts.push(sandbox)
  const gatewayBaseUrl = config.GATEWAY_BASE_URL ?? sandbox?.url
  if (!gatewayBaseUrl) throw new Error('GATEWAY_BASE_URL is not set')
  const encryptionKey = config.DATA_ENCRYPTION_KEY ?? demo?.keepEncryptionKey(config.DATA_DIR)
  if (!encryptionKey) throw new Error('DATA_ENCRYPTION_KEY is not set')
  const service = await startService({ config, databaseUrl, gatewayBaseUrl, encryptionKey, log })
  parts.push(service)
  if (config.API_KEY) await ensureFirstKey(service.ctx.sql, config.API_KEY)
  log.info({ url: service.url, role: config.ROLE }, 'ready')
  if (demo) await demo.presentDemo(service, sandbox)
}

async function startDatabase(config: Config, log: Log, parts: Part[]): Promise<string> {
  const database = await startEmbeddedPostgres({
    dataDir: config.DATA_DIR,
    log: (line) => log.info(line),
  })
  parts.push(database)
  return database.url
}

function makeStop(parts: Part[], log: Log) {
  let isStopping = false
  return () => {
    if (isStopping) return
    isStopping = true
    log.info('stopping: no new work, finishing what is in flight')
    setTimeout(() => process.exit(0), STOP_WITHIN_MS).unref()
    stopParts(parts).then(
      () => process.exit(0),
      (error: unknown) => {
        log.error(
          { err: error },
          'stopping went wrong; what was in flight is taken up at the next start',
        )
        process.exit(0)
      },
    )
  }
}

async function stopParts(parts: Part[]): Promise<void> {
  for (const part of parts.splice(0).reverse()) await part.stop()
}

/** One line an operator can act on; anything unexpected in full. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) {
    return `The settings are not usable:\n${error.lines.map((line) => `  ${line}`).join('\n')}`
  }
  if (error instanceof EmbeddedPostgresError) return error.message
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE' && error instanceof Error) {
    return `${error.message}: another program listens there; stop it, or set PORT (SANDBOX_PORT for the sandbox)`
  }
  if (code === '28P01' || code === '28000' || code === '3D000') {
    return `The database of DATABASE_URL refuses the connection (${code}): check user, password and database name`
  }
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'CONNECT_TIMEOUT') {
    return `The database of DATABASE_URL is out of reach (${code}): check its address, and that it runs`
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

main().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`)
  process.exit(1)
})
