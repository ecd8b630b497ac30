import { listWrites } from '../../../src/console/audit-list.ts'
import type { ServiceContext } from '../../../src/create-context.ts'
import { listDiscrepancies } from '../../../src/discrepancies/routes.ts'
import { listOfTransaction, listOpenDiscrepancies } from '../../../src/discrepancies/store.ts'
import { publishEvents } from '../../../src/feed/publish-events.ts'
import { readFeed } from '../../../src/feed/read-feed.ts'
import { findPayment, listPayments } from '../../../src/payments/find-payments.ts'
import { EXAMINED } from '../../../src/platform/postgres/list-page.ts'
import { listExternalOfTransaction } from '../../../src/refunds/external-view.ts'
import { findRefund, listRefunds, listWaitingRefunds } from '../../../src/refunds/find.ts'
import { readSurplus } from '../../../src/refunds/surplus.ts'
import { findObjects } from '../../../src/search.ts'
import { findTransaction } from '../../../src/transactions/find-transaction.ts'
import { listByAmount, listTransactions } from '../../../src/transactions/find-transactions.ts'
import { readMessages } from '../../../src/transactions/read-messages.ts'
import { readTimeline } from '../../../src/transactions/timeline.ts'
import { createDeliveryRound } from '../../../src/webhooks/deliver.ts'
import { listSent } from '../../../src/webhooks/log.ts'
import type { TestDatabase } from '../../support/database.ts'
import { changeLifecycle, MERCHANT } from '../../support/service.ts'

type Run = (ctx: ServiceContext) => Promise<unknown>
/** Prepares rows over another connection. */
type Before = (database: TestDatabase) => Promise<unknown>

/** A piece of work on a hot path: how many rows it works on, and the buffers that each may touch. */
export type HotPath = readonly [name: string, rows: number, most: number, run: Run, before?: Before]

const { merchantCode } = MERCHANT
export const only = [merchantCode]
const KEY = { merchantCode, transactionId: 'T-000010' }
const REFUND = '00000000-0000-4000-8000-000000000010'
const FEED = {
  merchants: only,
  types: ['payment.created', 'payment.updated'],
  withRefunds: false,
}

/** How many rows a path that takes several at once works on. */
export const BATCH = 16

/** Ids of transactions that `fillRows` stores. */
export const numbered = (from: number, step = 10) =>
  Array.from({ length: BATCH }, (_, n) => `T-${String(from + n * step).padStart(6, '0')}`)

/** Behind most rows of `fillRows`. */
const LATE = { time: '2020-01-01 00:00:00+00', id: 'T', merchantCode }

type List<F> = (
  ctx: ServiceContext,
  filter: F & { merchants: string[] },
  limit: number,
  after: typeof LATE | undefined,
) => Promise<unknown>

/** Reads a page of ten. */
const page =
  <const F extends object>(list: List<F>, filter: F, after?: typeof LATE): Run =>
  (ctx) =>
    list(ctx, { merchants: only, ...filter }, 10, after)

/** The times of some ten rows of `fillRows`. */
const SECONDS = {
  from: new Date(Date.now() - 110_000).toISOString(),
  to: new Date(Date.now() - 100_000).toISOString(),
}

/** Makes only the first endpoint, or the last, due. */
const makeDue =
  (order: 'asc' | 'desc'): Before =>
  ({ sql }) =>
    sql`
    update webhook_endpoints set lease_id = null, lease_owner = null, due_at = case when id = (
      select id from webhook_endpoints order by created_at ${sql.unsafe(order)} limit 1)
      then '2020-01-01'::timestamptz else 'infinity' end`

/** Sends one wave, which is accepted at once. */
async function sendWave(ctx: ServiceContext): Promise<void> {
  let calls = 0
  const send = () => {
    calls += 1
    return Promise.resolve({ status: 204, error: null, answer: '', durationMs: 1 })
  }
  const { finished } = await createDeliveryRound({
    ...changeLifecycle(ctx, { givingUp: AbortSignal.abort() }),
    webhooks: { ...ctx.webhooks, send },
  })()
  await finished
  if (calls !== 4) throw new Error(`${calls} calls`)
}

/** Everything that runs for each read, event and delivery. */
export const HOT_READS: readonly HotPath[] = [
  ['transaction by id', 1, 25, (ctx) => findTransaction(ctx, only, 'T-000010')],
  [
    'transactions by id',
    BATCH,
    25,
    (ctx) => Promise.all(numbered(10).map((id) => findTransaction(ctx, only, id))),
  ],
  ['payment by id', 1, 25, (ctx) => findPayment(ctx, only, 'P-000010')],
  ['refund by id', 1, 12, (ctx) => findRefund(ctx, only, REFUND)],
  [
    'timeline',
    1,
    70,
    (ctx) =>
      readTimeline(ctx, { transaction: KEY, withRefunds: true, limit: 50, after: undefined }),
  ],
  ['what the gateway sent about one', 1, 60, (ctx) => readMessages(ctx, KEY, true, 10)],
  // What an endpoint has not reached yet is looked for among the newest 500 events, however many there are.
  ['webhooks of a transaction', 1, 60, (ctx) => listSent(ctx, KEY, false, 20)],
  [
    'writes on a transaction',
    1,
    20,
    (ctx) => listWrites(ctx.db.sql, merchantCode, ['T-000010', 'P-000010'], 20),
  ],
  ['discrepancies of a transaction', 1, 15, (ctx) => listOfTransaction(ctx.db.sql, KEY, 50)],
  ['external refunds of a transaction', 1, 25, (ctx) => listExternalOfTransaction(ctx, KEY, 20)],
  ['surplus of a transaction', 1, 60, (ctx) => readSurplus(ctx.db.sql, KEY)],
  [
    'refunds that wait for a person, of which there are none',
    1,
    15,
    (ctx) =>
      listWaitingRefunds(ctx, { merchants: only, statuses: ['awaiting_approval', 'needs_review'] }),
  ],
  [
    'open discrepancies, the most severe first',
    50,
    20,
    (ctx) => listOpenDiscrepancies(ctx, { merchants: only }),
  ],
  ['page of transactions', 10, 25, page(listTransactions, {})],
  ['transactions of an order', 1, 25, page(listTransactions, { orderId: 'O-000010' })],
  ['transactions of a merchant id', 1, 25, page(listTransactions, { merchantTxnId: 'M-000010' })],
  ['transactions by an amount that all have', 10, 40, page(listByAmount, { amount: '1000' })],
  ['a late page of these', 10, 40, page(listByAmount, { amount: '1000.0' }, LATE)],
  ['transactions by an amount that none has', 1, 25, page(listByAmount, { amount: '1001' })],
  ['payments by an amount that all have', 10, 25, page(listPayments, { amount: '1000' })],
  ['a late page of those', 10, 25, page(listPayments, { amount: '1000' }, LATE)],
  ['payments by an amount that none has', 1, 25, page(listPayments, { amount: '1001' })],
  ['payments of an order', 1, 30, page(listPayments, { orderId: 'O-000010' })],
  ['payments of a transaction', 1, 25, page(listPayments, { transactionId: 'T-000010' })],
  ['refunds of an order', 1, 20, page(listRefunds, { orderId: 'O-000010' })],
  ['refunds by amount', 10, 12, page(listRefunds, { amount: '10' })],
  ['refunds by a name that requested none', 1, 12, page(listRefunds, { requestedBy: 'nobody' })],
  [
    'search',
    100,
    25,
    (ctx) => findObjects(ctx.db.sql, only, '1000', { withRefunds: true, limit: 50 }),
  ],
  ['page of payments', 10, 25, page(listPayments, {})],
  ['page of refunds', 10, 12, page(listRefunds, {})],
  ['refunds of a payment', 1, 12, page(listRefunds, { paymentId: 'P-000010' })],
  ['page of discrepancies', 10, 10, page(listDiscrepancies, {})],
  ['transactions in no such state', EXAMINED, 2, page(listTransactions, { state: 'refunded' })],
  ['transactions of a few seconds', 10, 25, page(listTransactions, SECONDS)],
  [
    'payments with a status and a method that none has',
    EXAMINED,
    2,
    page(listPayments, { status: 'FAILED', paymentMethod: 'QR' }),
  ],
  [
    'a late page of payments by amount, with a status that none has',
    EXAMINED,
    2,
    page(listPayments, { amount: '1000', status: 'FAILED' }, LATE),
  ],
  [
    'transactions by an amount that all have, in a state that none has',
    1_000,
    20,
    page(listByAmount, { amount: '1000', state: 'failed' }),
  ],
  [
    'refunds of a name, with an outcome that none has',
    2_000,
    3,
    page(listRefunds, { requestedBy: 'test', status: 'succeeded' }),
  ],
  ['discrepancies of no such kind', 2_000, 3, page(listDiscrepancies, { kind: 'amount_mismatch' })],
  ['publishing', 100, 20, (ctx) => publishEvents(ctx.db.sql, 100)],
  ['page of the feed', 100, 6, (ctx) => readFeed(ctx, FEED, 100, 100)],
  ['page of the feed for all readers', 100, 6, (ctx) => readFeed(ctx, undefined, 100, 100)],
  ['webhooks of the feed', 4, 75, sendWave, makeDue('desc')],
  ['webhooks that are sent again', 4, 40, sendWave, makeDue('asc')],
]
