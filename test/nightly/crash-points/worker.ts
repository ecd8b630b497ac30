import { createInterface } from 'node:readline'
import { readConfig } from '../../../src/config/config.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'
import { startService } from '../../../src/service.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'

/**
 * The service as a process without its loops: it serves HTTP, and runs one round of the sync for each
 * line on its standard input. Every statement that it sends then belongs to that work.
 */
async function main(): Promise<void> {
  const config = readConfig()
  const { DATABASE_URL: databaseUrl, GATEWAY_BASE_URL: gatewayBaseUrl } = config
  const { DATA_ENCRYPTION_KEY: encryptionKey } = config
  if (!databaseUrl || !gatewayBaseUrl || !encryptionKey) throw new Error('a setting is missing')
  const log = createLog(config.LOG_LEVEL)
  const service = await startService({ config, databaseUrl, gatewayBaseUrl, encryptionKey, log })
  const report = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
  report({ url: service.url })
  for await (const _ of createInterface(process.stdin)) {
    report({ claimed: await syncDue(service.ctx) })
  }
  await service.stop()
}

await main()
