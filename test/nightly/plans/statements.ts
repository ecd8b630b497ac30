import { randomUUID } from 'node:crypto'
import type { Access } from '../../../src/access/types.ts'
import type { ServiceContext } from '../../../src/create-context.ts'
import { storeNotifications } from '../../../src/ipn/readings.ts'
import { requestRefund } from '../../../src/refunds/request.ts'
import { claimDue, findNextDue, releaseClaim } from '../../../src/sync/claim-due.ts'
import { commitAnswer } from '../../../src/sync/commit.ts'
import type { Claim } from '../../../src/sync/types.ts'
import { requestSync } from '../../../src/transactions/request-sync.ts'
import { UNLIMITED } from '../../support/access.ts'
import { makePaymentArrival, makeRefundArrival } from '../../support/arrivals.ts'
import { MERCHANT } from '../../support/service.ts'
import { BATCH, HOT_READS, type HotPath, numbered, only } from './reads.ts'

const { merchantCode } = MERCHANT
/** The key that requests. */
export const ACCESS: Access = {
  ...UNLIMITED,
  id: '00000000-0000-4000-8000-000000000001',
  name: 'test',
  coversAll: true,
  scopes: ['payments:read', 'refunds:read', 'refunds:write'],
  chainId: '00000000-0000-4000-8000-000000000001',
  principal: 'key:00000000-0000-4000-8000-000000000001',
  merchants: only,
  requestId: 'r',
  required: new Set(),
}

let fresh = 0
/** Ids that no call has returned before. */
function makeIds(): string[] {
  fresh += BATCH
  return Array.from({ length: BATCH }, (_, n) => `N-${String(fresh + n).padStart(6, '0')}`)
}

let claims: Claim[] = []

/** Claims these transactions, which are the first of the account to be. */
const claim = (name: string, makeList: () => readonly string[]): HotPath => [
  `claim of ${name}`,
  BATCH,
  30,
  async (ctx) => {
    claims = await claimDue(ctx, BATCH)
  },
  ({ sql }) => sql`
    insert into transactions as t (merchant_code, transaction_id, due_at)
    select ${merchantCode}, id, '2020-01-01' from unnest(${[...makeList()]}::text[]) as id
    on conflict (merchant_code, transaction_id) do update set due_at = excluded.due_at, lease_id = null`,
]

const record = {
  command: 'QUERY_PT' as const,
  bodyHmac: { value: Buffer.alloc(32), keyId: 'k' },
  durationMs: 1,
  httpStatus: 200,
}

/** Answers each claim with the payment that `fillRows` stores for it. */
async function answerAll(ctx: ServiceContext, status: string): Promise<void> {
  if (claims.length !== BATCH) throw new Error(`${claims.length} claims`)
  const rest = { unreadable: [], rounded: [], json: '[]', omittedBytes: 0 }
  const commit = (one: Claim) => {
    const id = `P-${one.transactionId.slice(2)}${one.transactionId.startsWith('N') ? 'N' : ''}`
    const payment = { id, status, amount: '1000', refundedAmount: '0', paymentMethod: 'CC' }
    const value = { payments: [payment], ...rest }
    const call = { outcome: { kind: 'answered' as const, message: '', value }, record }
    return commitAnswer(ctx, { claim: one, sentAfterMs: performance.now() - one.knownAt, call })
  }
  await Promise.all(claims.map(commit))
}

const commit = (name: string, most: number, status = 'SUCCESS'): HotPath => [
  `commit of ${name}`,
  BATCH,
  most,
  (ctx) => answerAll(ctx, status),
]

const arrive = (name: string, most: number, makeList: () => readonly string[]): HotPath => [
  `intake, ${name}`,
  BATCH,
  most,
  ({ db: { sql } }) => {
    const make = (id: string) =>
      name === 'of refunds'
        ? makeRefundArrival(merchantCode, randomUUID(), `P-${id.slice(2)}`)
        : makePaymentArrival(merchantCode, id, `${id} ${randomUUID()}`)
    return storeNotifications(sql, makeList().map(make))
  },
]

const REFUND = { paymentId: 'P-000006', amount: '1', receiver: undefined, reason: undefined }

/** Everything that runs for each notification, query, request or event. */
export const HOT_PATHS: readonly HotPath[] = [
  arrive('new', 40, makeIds),
  arrive('known', 45, () => numbered(2)),
  arrive('of refunds', 45, () => numbered(3)),
  claim('new payments', makeIds),
  commit('new payments', 120),
  claim('known payments', () => numbered(4)),
  commit('a changed status', 180, 'FAILED'),
  claim('transactions with refunds', () => numbered(10)),
  commit('transactions with refunds', 180),
  claim('notified refunds', () => numbered(11)),
  commit('notified refunds', 230),
  [
    'release of a claim',
    BATCH,
    60,
    async (ctx) => {
      for (const one of await claimDue(ctx, BATCH)) await releaseClaim(ctx, one)
    },
  ],
  ['next due', 1, 15, (ctx) => findNextDue(ctx, 1000)],
  ['request to sync', 1, 75, (ctx) => requestSync(ctx, ACCESS, only, 'T-000005')],
  ['refund request', 1, 120, (ctx) => requestRefund(ctx, ACCESS, only, randomUUID(), REFUND)],
  ...HOT_READS,
]
