import { listWrites } from '../../src/console/audit-list.ts'
import type { ServiceContext } from '../../src/create-context.ts'
import { listDiscrepancies } from '../../src/discrepancies/routes.ts'
import { listOfTransaction, listOpenDiscrepancies } from '../../src/discrepancies/store.ts'
import { publishEvents } from '../../src/feed/publish-events.ts'
import { readFeed } from '../../src/feed/read-feed.ts'
import { findPayment, listPayments } from '../../src/payments/find-payments.ts'
import { EXAMINED } from '../../src/platform/postgres/list-page.ts'
import { listExternalOfTransaction } from '../../src/refunds/external-view.ts'
import { findRefund, listRefunds, listWaitingRefunds } from '../../src/refunds/find.ts'
import { readSurplus } from '../../src/refunds/surplus.ts'
import { findObjects } from '../../src/search.ts'
import { findTransaction } from '../../src/transactions/find-transaction.ts'
import { listByAmount, listTransactions } from '../../src/transactions/find-transactions.ts'
import { readMessages } from '../../src/transactions/read-messages.ts'
import { readTimeline } from '../../src/transactions/timeline.ts'
import { createDeliveryRound } from '../../src/webhooks/deliver.ts'
import { listSent } from '../../src/webhooks/log.ts'
import type { TestDatabase } from './database.ts'
import { changeLifecycle, MERCHANT } from './service.ts'

/** A piece of work on a hot path: `rows` is how much of it, `most` the buffers that each may touch. */
export type HotPath = {
  name: string
  rows: number
  most: number
  /** Prepares rows over another connection. */
  before?: (database: TestDatabase) => Promise<unknown>
  run: (ctx: ServiceContext) => Promise<unknown>
}

const { merchantCode } = MERCHANT
const only = [merchantCode]
const TYPES = ['payment.created', 'payment.updated']

/** Makes only the first endpoint, or the last, due. */
const makeDue =
  (order: 'asc' | 'desc') =>
  ({ sql }: TestDatabase) =>
    sql`
    update webhook_endpoints set lease_id = null, lease_owner = null, due_at = case when id = (
      select id from webhook_endpoints order by created_at ${sql.unsafe(order)} limit 1)
      then '2020-01-01'::timestamptz else 'infinity' end`

/** Sends one wave, which is accepted at once. */
async function sendWave(ctx: ServiceContext): Promise<void> {
  const accepted = { status: 204, error: null, answer: '', durationMs: 1 }
  let calls = 0
  const send = () => {
    calls += 1
    return Promise.resolve(accepted)
  }
  const webhooks = { ...ctx.webhooks, send }
  const { finished } = await createDeliveryRound({
    ...changeLifecycle(ctx, { givingUp: AbortSignal.abort() }),
    webhooks,
  })()
  await finished
  if (calls !== 4) throw new Error(`${calls} calls`)
}

/** Behind most rows of `fillRows`. */
const LATE = { time: '2020-01-01 00:00:00+00', id: 'T', merchantCode }

/** The times of some ten rows of `fillRows`. */
const SECONDS = {
  from: new Date(Date.now() - 110_000).toISOString(),
  to: new Date(Date.now() - 100_000).toISOString(),
}

/** How many rows a path that takes several at once works on. */
export const BATCH = 16

/** Ids of transactions that `fillRows` stores. */
export const numbered = (from: number, step = 10) =>
  Array.from({ length: BATCH }, (_, n) => `T-${String(from + n * step).padStart(6, '0')}`)

/** Everything that runs for each read, event and delivery. */
export const HOT_READS: readonly HotPath[] = [
  {
    name: 'transaction by id',
    rows: 1,
    most: 25,
    run: (ctx) => findTransaction(ctx, only, 'T-000010'),
  },
  {
    name: 'transactions by id',
    rows: BATCH,
    most: 25,
    run: (ctx) => Promise.all(numbered(10).map((id) => findTransaction(ctx, only, id))),
  },
  { name: 'payment by id', rows: 1, most: 25, run: (ctx) => findPayment(ctx, only, 'P-000010') },
  {
    name: 'refund by id',
    rows: 1,
    most: 12,
    run: (ctx) => findRefund(ctx, only, '00000000-0000-4000-8000-000000000010'),
  },
  {
    name: 'timeline',
    rows: 1,
    most: 70,
    run: (ctx) =>
      readTimeline(ctx, {
        transaction: { merchantCode, transactionId: 'T-000010' },
        withRefunds: true,
        limit: 50,
        after: undefined,
      }),
  },
  {
    name: 'what the gateway sent about a transaction',
    rows: 1,
    most: 60,
    run: (ctx) => readMessages(ctx, { merchantCode, transactionId: 'T-000010' }, true, 10),
  },
  {
    name: 'webhooks of a transaction',
    rows: 1,
    // What an endpoint has not reached yet is looked for among the newest 500 events, however many there are.
    most: 60,
    run: (ctx) => listSent(ctx, { merchantCode, transactionId: 'T-000010' }, false, 20),
  },
  {
    name: 'writes on a transaction',
    rows: 1,
    most: 20,
    run: (ctx) => listWrites(ctx.sql, merchantCode, ['T-000010', 'P-000010'], 20),
  },
  {
    name: 'discrepancies of a transaction',
    rows: 1,
    most: 15,
    run: (ctx) => listOfTransaction(ctx.sql, { merchantCode, transactionId: 'T-000010' }, 50),
  },
  {
    name: 'external refunds of a transaction',
    rows: 1,
    most: 25,
    run: (ctx) => listExternalOfTransaction(ctx, { merchantCode, transactionId: 'T-000010' }, 20),
  },
  {
    name: 'surplus of a transaction',
    rows: 1,
    most: 60,
    run: (ctx) => readSurplus(ctx.sql, { merchantCode, transactionId: 'T-000010' }),
  },
  {
    name: 'refunds that wait for a person, of which there are none',
    rows: 1,
    most: 15,
    run: (ctx) =>
      listWaitingRefunds(ctx, {
        merchants: only,
        statuses: ['awaiting_approval', 'needs_review'],
      }),
  },
  {
    name: 'open discrepancies, the most severe first',
    rows: 50,
    most: 20,
    run: (ctx) => listOpenDiscrepancies(ctx, { merchants: only }),
  },
  {
    name: 'page of transactions',
    rows: 10,
    most: 25,
    run: (ctx) => listTransactions(ctx, { merchants: only }, 10, undefined),
  },
  {
    name: 'transactions of an order',
    rows: 1,
    most: 25,
    run: (ctx) => listTransactions(ctx, { merchants: only, orderId: 'O-000010' }, 10, undefined),
  },
  {
    name: 'transactions with an id of the merchant',
    rows: 1,
    most: 25,
    run: (ctx) =>
      listTransactions(ctx, { merchants: only, merchantTxnId: 'M-000010' }, 10, undefined),
  },
  {
    name: 'transactions by an amount that all have',
    rows: 10,
    most: 40,
    run: (ctx) => listByAmount(ctx, { merchants: only, amount: '1000' }, 10, undefined),
  },
  {
    name: 'a late page of transactions by amount',
    rows: 10,
    most: 40,
    run: (ctx) => listByAmount(ctx, { merchants: only, amount: '1000.0' }, 10, LATE),
  },
  {
    name: 'transactions by an amount that none has',
    rows: 1,
    most: 25,
    run: (ctx) => listByAmount(ctx, { merchants: only, amount: '1001' }, 10, undefined),
  },
  {
    name: 'payments by an amount that all have',
    rows: 10,
    most: 25,
    run: (ctx) => listPayments(ctx, { merchants: only, amount: '1000' }, 10, undefined),
  },
  {
    name: 'a late page of payments by amount',
    rows: 10,
    most: 25,
    run: (ctx) => listPayments(ctx, { merchants: only, amount: '1000' }, 10, LATE),
  },
  {
    name: 'payments by an amount that none has',
    rows: 1,
    most: 25,
    run: (ctx) => listPayments(ctx, { merchants: only, amount: '1001' }, 10, undefined),
  },
  {
    name: 'payments of an order',
    rows: 1,
    most: 30,
    run: (ctx) => listPayments(ctx, { merchants: only, orderId: 'O-000010' }, 10, undefined),
  },
  {
    name: 'payments of a transaction',
    rows: 1,
    most: 25,
    run: (ctx) => listPayments(ctx, { merchants: only, transactionId: 'T-000010' }, 10, undefined),
  },
  {
    name: 'refunds of an order',
    rows: 1,
    most: 20,
    run: (ctx) => listRefunds(ctx, { merchants: only, orderId: 'O-000010' }, 10, undefined),
  },
  {
    name: 'refunds by amount',
    rows: 10,
    most: 12,
    run: (ctx) => listRefunds(ctx, { merchants: only, amount: '10' }, 10, undefined),
  },
  {
    name: 'refunds by a name that requested none',
    rows: 1,
    most: 12,
    run: (ctx) => listRefunds(ctx, { merchants: only, requestedBy: 'nobody' }, 10, undefined),
  },
  {
    name: 'search',
    rows: 100,
    most: 25,
    run: (ctx) => findObjects(ctx, only, '1000', { withRefunds: true, limit: 50 }),
  },
  {
    name: 'page of payments',
    rows: 10,
    most: 25,
    run: (ctx) => listPayments(ctx, { merchants: only }, 10, undefined),
  },
  {
    name: 'page of refunds',
    rows: 10,
    most: 12,
    run: (ctx) => listRefunds(ctx, { merchants: only }, 10, undefined),
  },
  {
    name: 'refunds of a payment',
    rows: 1,
    most: 12,
    run: (ctx) => listRefunds(ctx, { merchants: only, paymentId: 'P-000010' }, 10, undefined),
  },
  {
    name: 'page of discrepancies',
    rows: 10,
    most: 10,
    run: (ctx) => listDiscrepancies(ctx, { merchants: only }, 10, undefined),
  },
  {
    name: 'transactions in a state that none has',
    rows: EXAMINED,
    most: 2,
    run: (ctx) => listTransactions(ctx, { merchants: only, state: 'refunded' }, 10, undefined),
  },
  {
    name: 'transactions of a few seconds',
    rows: 10,
    most: 25,
    run: (ctx) => listTransactions(ctx, { merchants: only, ...SECONDS }, 10, undefined),
  },
  {
    name: 'payments with a status and a method that none has',
    rows: EXAMINED,
    most: 2,
    run: (ctx) =>
      listPayments(ctx, { merchants: only, status: 'FAILED', paymentMethod: 'QR' }, 10, undefined),
  },
  {
    name: 'a late page of payments by amount, with a status that none has',
    rows: EXAMINED,
    most: 2,
    run: (ctx) =>
      listPayments(ctx, { merchants: only, amount: '1000', status: 'FAILED' }, 10, LATE),
  },
  {
    name: 'transactions by an amount that all have, in a state that none has',
    rows: 1_000,
    most: 20,
    run: (ctx) =>
      listByAmount(ctx, { merchants: only, amount: '1000', state: 'failed' }, 10, undefined),
  },
  {
    name: 'refunds of a name, with an outcome that none has',
    rows: 2_000,
    most: 3,
    run: (ctx) =>
      listRefunds(
        ctx,
        { merchants: only, requestedBy: 'test', status: 'succeeded' },
        10,
        undefined,
      ),
  },
  {
    name: 'discrepancies of a kind that there is none of',
    rows: 2_000,
    most: 3,
    run: (ctx) =>
      listDiscrepancies(ctx, { merchants: only, kind: 'amount_mismatch' }, 10, undefined),
  },
  { name: 'publishing', rows: 100, most: 20, run: (ctx) => publishEvents(ctx, 100) },
  {
    name: 'page of the feed',
    rows: 100,
    most: 6,
    run: (ctx) => readFeed(ctx, { merchants: only, types: TYPES, withRefunds: false }, 100, 100),
  },
  {
    name: 'page of the feed for all readers',
    rows: 100,
    most: 6,
    run: (ctx) => readFeed(ctx, undefined, 100, 100),
  },
  { name: 'webhooks of the feed', rows: 4, most: 75, before: makeDue('desc'), run: sendWave },
  {
    name: 'webhooks that are sent again',
    rows: 4,
    most: 40,
    before: makeDue('asc'),
    run: sendWave,
  },
]
