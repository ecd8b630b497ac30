import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { ApiKey } from '../../../src/access/keys.ts'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { createGroup } from '../../../src/group.ts'
import { createLog } from '../../../src/log.ts'
import { createContext } from '../../../src/service.ts'
import { findTransaction, type TransactionWithPayments } from '../../../src/transactions/find.ts'

/** The baseline of reads: the same HTTP stack, answering the first transaction it was asked for, whatever the id. */
const config = readConfig()
const { ctx } = await createContext({
  config,
  databaseUrl: config.DATABASE_URL ?? '',
  gatewayBaseUrl: config.GATEWAY_BASE_URL ?? '',
  encryptionKey: config.DATA_ENCRYPTION_KEY ?? '',
  log: createLog('info'),
})
const key: ApiKey = {
  id: '00000000-0000-4000-8000-000000000000',
  name: 'bench',
  scopes: ['payments:read'],
  merchantCode: '*',
  refundMax: null,
  refundDailyMax: null,
  ratePerMinute: null,
  chainId: '00000000-0000-4000-8000-000000000000',
}
let constant: TransactionWithPayments | undefined
const app = createApp({
  ...ctx,
  keys: { find: () => Promise.resolve(key) },
  lookUps: {
    transactions: {
      ...createGroup(1),
      async add({ merchants, transactionId }) {
        constant ??= await findTransaction(ctx, merchants, transactionId)
        return [constant]
      },
    },
  },
})
createServer(getRequestListener(app.fetch)).listen(config.PORT, '127.0.0.1', () => {
  console.log('ready')
})
