import { randomUUID } from 'node:crypto'
import type { Access } from '../../src/access/types.ts'
import type { ServiceContext } from '../../src/create-context.ts'
import { storeNotifications } from '../../src/ipn/readings.ts'
import { requestRefund } from '../../src/refunds/request.ts'
import { claimDue, findNextDue, releaseClaim } from '../../src/sync/claim-due.ts'
import { commitAnswer } from '../../src/sync/commit.ts'
import type { Claim } from '../../src/sync/types.ts'
import { requestSync } from '../../src/transactions/request-sync.ts'
import { makePaymentArrival, makeRefundArrival } from './arrivals.ts'
import type { TestDatabase } from './database.ts'
import { BATCH, HOT_READS, type HotPath, numbered } from './hot-reads.ts'
import { MERCHANT } from './service.ts'

const { merchantCode } = MERCHANT
const only = [merchantCode]
/** The key that requests. */
export const ACCESS: Access = {
  id: '00000000-0000-4000-8000-000000000001',
  name: 'test',
  coversAll: true,
  scopes: ['payments:read', 'refunds:read', 'refunds:write'],
  refundMax: null,
  refundMaxByCurrency: null,
  refundDailyMaxByCurrency: null,
  refundDailyMax: null,
  ratePerMinute: null,
  networks: null,
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

/** Makes these transactions the first of the account to be claimed. */
async function putFirst({ sql }: TestDatabase, ids: readonly string[]): Promise<void> {
  await sql`
    insert into transactions as t (merchant_code, transaction_id, due_at)
    select ${merchantCode}, id, '2020-01-01' from unnest(${[...ids]}::text[]) as id
    on conflict (merchant_code, transaction_id) do update set due_at = excluded.due_at, lease_id = null`
}

/** Answers each claim with the payment that `fillRows` stores for it. */
async function answerAll(ctx: ServiceContext, claims: readonly Claim[], status: string) {
  if (claims.length !== BATCH) throw new Error(`${claims.length} claims`)
  const commit = (claim: Claim) =>
    commitAnswer(ctx, {
      claim,
      sentAfterMs: performance.now() - claim.knownAt,
      call: {
        outcome: {
          kind: 'answered',
          message: '',
          value: {
            payments: [
              {
                id: `P-${claim.transactionId.slice(2)}${claim.transactionId.startsWith('N') ? 'N' : ''}`,
                status,
                amount: '1000',
                refundedAmount: '0',
                paymentMethod: 'CC',
              },
            ],
            unreadable: [],
            rounded: [],
            json: '[]',
            omittedBytes: 0,
          },
        },
        record: {
          command: 'QUERY_PT',
          bodyHmac: { value: Buffer.alloc(32), keyId: 'k' },
          durationMs: 1,
          httpStatus: 200,
        },
      },
    })
  await Promise.all(claims.map(commit))
}

const arrive = (ids: readonly string[], kind: 'payment' | 'refund') =>
  ids.map((id) =>
    kind === 'payment'
      ? makePaymentArrival(merchantCode, id, `${id} ${randomUUID()}`)
      : makeRefundArrival(merchantCode, randomUUID(), `P-${id.slice(2)}`),
  )

const claim = (ctx: ServiceContext) => claimDue(ctx, BATCH)

let claims: Claim[] = []

/** Everything that runs for each notification, query, request or event. */
export const HOT_PATHS: readonly HotPath[] = [
  {
    name: 'intake, new',
    rows: BATCH,
    most: 40,
    run: ({ sql }) => storeNotifications(sql, arrive(makeIds(), 'payment')),
  },
  {
    name: 'intake, known',
    rows: BATCH,
    most: 45,
    run: ({ sql }) => storeNotifications(sql, arrive(numbered(2), 'payment')),
  },
  {
    name: 'intake, of refunds',
    rows: BATCH,
    most: 45,
    run: ({ sql }) => storeNotifications(sql, arrive(numbered(3), 'refund')),
  },
  {
    name: 'claim',
    rows: BATCH,
    most: 30,
    before: (database) => putFirst(database, makeIds()),
    async run(ctx) {
      claims = await claim(ctx)
    },
  },
  {
    name: 'commit of new payments',
    rows: BATCH,
    most: 120,
    run: (ctx) => answerAll(ctx, claims, 'SUCCESS'),
  },
  {
    name: 'claim of known payments',
    rows: BATCH,
    most: 30,
    before: (database) => putFirst(database, numbered(4)),
    async run(ctx) {
      claims = await claim(ctx)
    },
  },
  {
    name: 'commit of a changed status',
    rows: BATCH,
    most: 180,
    run: (ctx) => answerAll(ctx, claims, 'FAILED'),
  },
  {
    name: 'claim of transactions with refunds',
    rows: BATCH,
    most: 30,
    before: (database) => putFirst(database, numbered(10)),
    async run(ctx) {
      claims = await claim(ctx)
    },
  },
  {
    name: 'commit with refunds',
    rows: BATCH,
    most: 180,
    run: (ctx) => answerAll(ctx, claims, 'SUCCESS'),
  },
  {
    name: 'claim of notified refunds',
    rows: BATCH,
    most: 30,
    before: (database) => putFirst(database, numbered(11)),
    async run(ctx) {
      claims = await claim(ctx)
    },
  },
  {
    name: 'commit of notified refunds',
    rows: BATCH,
    most: 230,
    run: (ctx) => answerAll(ctx, claims, 'SUCCESS'),
  },
  {
    name: 'release of a claim',
    rows: BATCH,
    most: 60,
    async run(ctx) {
      for (const one of await claim(ctx)) await releaseClaim(ctx, one)
    },
  },
  { name: 'next due', rows: 1, most: 15, run: (ctx) => findNextDue(ctx, 1000) },
  {
    name: 'request to sync',
    rows: 1,
    most: 75,
    run: (ctx) => requestSync(ctx, ACCESS, only, 'T-000005'),
  },
  {
    name: 'refund request',
    rows: 1,
    most: 120,
    run: (ctx) =>
      requestRefund(ctx, ACCESS, only, randomUUID(), {
        paymentId: 'P-000006',
        amount: '1',
        receiver: undefined,
        reason: undefined,
      }),
  },
  ...HOT_READS,
]
