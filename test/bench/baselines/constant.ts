import type { ApiKey } from '../../../src/access/keys.ts'
import { createBatcher } from '../../../src/platform/concurrency/batcher.ts'
import { findTransaction } from '../../../src/transactions/find-transactions.ts'
import type { TransactionWithPayments } from '../../../src/transactions/types.ts'
import { serveBaseline } from './serve-baseline.ts'

/** The baseline of reads: the same HTTP stack, answering the first transaction it was asked for, whatever the id. */
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
await serveBaseline((ctx) => ({
  ...ctx,
  keys: { find: () => Promise.resolve(key) },
  transactionLookups: {
    ...createBatcher(1),
    async add({ merchants, transactionId }) {
      constant ??= await findTransaction(ctx, merchants, transactionId)
      return [constant]
    },
  },
}))
