import { prepareAccess } from '../access/prepare-access.ts'
import type { Config } from '../config/config.ts'
import { prepareSchema } from '../db/prepare-schema.ts'
import { startEmbeddedPostgres } from '../platform/postgres/embedded/start.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { type Service, startService } from '../service.ts'
import { describeStart } from './describe-start.ts'
import type { Parts } from './parts.ts'
import { requireFreePorts } from './require-free-ports.ts'

/**
 * Starts the database of demo mode, the sandbox and the service. What was started is added to `parts` at once, also
 * when a later part fails.
 * @returns the service
 * @throws Error if a part cannot start
 */
export async function startParts(config: Config, log: Log, parts: Parts): Promise<Service> {
  await requireFreePorts(config)
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
  const description = await describeStart({ config, sql, gatewayBaseUrl, encryptionKey })
  log.info({ url, metricsUrl, ...description }, 'ready')
  if (demo) await demo.presentDemo(service, sandbox)
  return service
}

async function startDatabase(config: Config, log: Log, parts: Parts): Promise<string> {
  const database = await startEmbeddedPostgres({
    dataDir: config.DATA_DIR,
    log: (line) => log.info(line),
  })
  parts.add(database)
  return database.url
}
