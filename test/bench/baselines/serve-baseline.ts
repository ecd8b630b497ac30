import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { createContext } from '../../../src/create-context.ts'
import { createLog } from '../../../src/platform/telemetry/log.ts'

type AppContext = Parameters<typeof createApp>[0]

/** Serves the same HTTP stack as the service, with the parts of its context that the baseline replaces. */
export async function serveBaseline(replace: (ctx: AppContext) => AppContext): Promise<void> {
  const config = readConfig()
  const { ctx } = await createContext({
    config,
    databaseUrl: config.DATABASE_URL ?? '',
    gatewayBaseUrl: config.GATEWAY_BASE_URL ?? '',
    encryptionKey: config.DATA_ENCRYPTION_KEY ?? '',
    log: createLog('info'),
  })
  const app = createApp(replace(ctx))
  createServer(getRequestListener(app.fetch)).listen(config.PORT, '127.0.0.1', () => {
    console.log('ready')
  })
}
