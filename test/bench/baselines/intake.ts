import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { type Inbox, storeArrivals } from '../../../src/ipn/inbox.ts'
import { createLog } from '../../../src/log.ts'
import { createContext } from '../../../src/service.ts'

/** Baselines of the intake: the same stack and checks, with `one insert per request`, or storing `nothing`. */
const config = readConfig()
const { ctx } = await createContext({
  config,
  databaseUrl: config.DATABASE_URL ?? '',
  gatewayBaseUrl: config.GATEWAY_BASE_URL ?? '',
  encryptionKey: config.DATA_ENCRYPTION_KEY ?? '',
  log: createLog('info'),
})
const inbox: Inbox = {
  store: async (arrival) => {
    if (process.env.STORES !== 'nothing') await storeArrivals(ctx.sql, [arrival])
  },
  isFull: () => false,
  measure: () => ({ waiting: 0, characters: 0 }),
  drain: () => Promise.resolve(),
}
const app = createApp({ ...ctx, inbox })
createServer(getRequestListener(app.fetch)).listen(config.PORT, '127.0.0.1', () => {
  console.log('ready')
})
