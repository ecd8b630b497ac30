import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import {
  answers,
  answersNothing,
  createRouter,
  Id,
  MerchantCode,
  TimeParameter,
  WaitParameter,
} from '../http/input.ts'
import { cutPage, DEFAULT_LIMIT, pageOf, pageParameters, readCursor } from '../http/page.ts'
import { BODY_REFUSALS, refuses } from '../http/refusals.ts'
import { findTransaction, listTransactions, type TransactionWithPayments } from './find.ts'
import { requestSync } from './request-sync.ts'
import { readTimeline, TimelineEntry } from './timeline.ts'
import { showTransaction, Transaction, writeEtag } from './view.ts'
import { waitForTransaction } from './wait.ts'

const params = z.object({ transactionId: Id })
const merchantCode = MerchantCode
const shared = { tags: ['Transactions'], ...withScope('payments:read') }

const readOne = createRoute({
  method: 'get',
  path: '/v1/transactions/{transactionId}',
  operationId: 'readTransaction',
  summary: 'One transaction with its payments',
  description:
    'With `wait` and `If-None-Match` it answers as soon as the transaction differs, else 304 at the time-out; ' +
    'with `wait` alone as soon as it is final, else as it is at the time-out.',
  ...shared,
  request: {
    params,
    query: z.strictObject({ wait: WaitParameter, merchantCode }),
    headers: z.object({
      'if-none-match': z.string().optional().openapi({
        description:
          'The `ETag` of an earlier answer, e.g. `W/"7"`, or several: the same again is a 304',
      }),
    }),
  },
  responses: {
    200: answers('The transaction; `ETag` changes with every visible change', Transaction, 'ETag'),
    304: answersNothing('As `If-None-Match` has it', 'ETag'),
    ...refuses('transaction_not_found', 'ambiguous_merchant'),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/transactions',
  operationId: 'listTransactions',
  summary: 'Transactions, newest first',
  ...shared,
  request: {
    query: z.strictObject({
      state: Transaction.shape.state.optional().openapi({ description: 'Only those in it' }),
      orderId: Id.optional(),
      from: TimeParameter,
      to: TimeParameter,
      merchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: answers('A page', pageOf(Transaction)), ...refuses() },
})

const sync = createRoute({
  method: 'post',
  path: '/v1/transactions/{transactionId}/sync',
  operationId: 'syncTransaction',
  summary: 'Ask the gateway now; registers a transaction whose notification never came',
  ...shared,
  request: {
    params,
    query: z.strictObject({ merchantCode }),
    body: {
      content: {
        'application/json': { schema: z.strictObject({ merchantCode }).openapi({ example: {} }) },
      },
      required: false,
    },
  },
  responses: {
    202: answers('The query is due', Transaction),
    ...refuses(...BODY_REFUSALS, 'merchant_not_found', 'ambiguous_merchant'),
  },
})

const timeline = createRoute({
  method: 'get',
  path: '/v1/transactions/{transactionId}/timeline',
  operationId: 'readTimeline',
  summary: 'Everything that happened to a transaction, oldest first',
  description: 'Steps of refunds are in it for keys that have the scope `refunds:read`, too.',
  ...shared,
  request: { params, query: z.strictObject({ merchantCode, ...pageParameters }) },
  responses: {
    200: answers('A page', pageOf(TimelineEntry)),
    ...refuses('transaction_not_found', 'ambiguous_merchant'),
  },
})

/** The merchants' routes on transactions. */
export function transactionRoutes(ctx: Context) {
  return createRouter()
    .openapi(readOne, async (c) => {
      const { transactionId } = c.req.valid('param')
      const query = c.req.valid('query')
      const tags = c.req.valid('header')['if-none-match']
      const merchants = narrowMerchants(c.get('access'), query.merchantCode)
      const matches = ({ transaction }: TransactionWithPayments) =>
        tags !== undefined && listsTag(tags, writeEtag(transaction))
      const first = await findTransaction(ctx, merchants, transactionId)
      const done = (found: TransactionWithPayments) =>
        tags === undefined ? found.transaction.final : !matches(found)
      const found =
        query.wait === undefined
          ? first
          : await waitForTransaction(ctx, first, done, query.wait * 1000, c.req.raw.signal)
      const headers = { etag: writeEtag(found.transaction), 'cache-control': 'private, no-cache' }
      if (matches(found)) return c.body(null, 304, headers)
      return c.json(showTransaction(found), 200, headers)
    })
    .openapi(list, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode, ...filter } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const rows = await listTransactions(ctx, { ...filter, merchants }, limit, readCursor(cursor))
      return c.json(cutPage(rows, limit, locate, showTransaction), 200)
    })
    .openapi(sync, async (c) => {
      const { transactionId } = c.req.valid('param')
      const merchants = narrowMerchants(
        c.get('access'),
        chooseCode(c.req.valid('json')?.merchantCode, c.req.valid('query').merchantCode),
      )
      const access = c.get('access')
      const owner = await requestSync(ctx, access, merchants, transactionId)
      const { name: key, requestId } = access
      ctx.log.info({ transactionId, merchantCode: owner, key, requestId }, 'sync requested')
      return c.json(showTransaction(await findTransaction(ctx, [owner], transactionId)), 202)
    })
    .openapi(timeline, async (c) => {
      const { limit = DEFAULT_LIMIT, cursor, merchantCode } = c.req.valid('query')
      const merchants = narrowMerchants(c.get('access'), merchantCode)
      const { transactionId } = c.req.valid('param')
      const { transaction } = await findTransaction(ctx, merchants, transactionId)
      const withRefunds = c.get('access').scopes.includes('refunds:read')
      const rows = await readTimeline(ctx, transaction, withRefunds, limit, readCursor(cursor))
      return c.json(
        cutPage(
          rows,
          limit,
          (row) => row.position,
          (row) => row.entry,
        ),
        200,
      )
    })
}

/** @throws DomainError `invalid_request` when body and address name two accounts */
function chooseCode(inBody: string | undefined, inQuery: string | undefined) {
  if (inBody !== undefined && inQuery !== undefined && inBody !== inQuery) {
    const message = 'is not the same in the body and in the address'
    throw new DomainError('invalid_request', `merchantCode: ${message}`, {
      errors: [{ path: 'merchantCode', message }],
    })
  }
  return inBody ?? inQuery
}

function locate({
  transaction: { firstSeenAt, transactionId, merchantCode },
}: TransactionWithPayments) {
  return { time: firstSeenAt, id: transactionId, merchantCode }
}

/** Whether `If-None-Match` names the tag, by weak comparison (RFC 9110, 13.1.2). */
function listsTag(header: string, tag: string): boolean {
  const bare = (one: string) => one.trim().replace(/^W\//, '')
  return header.split(',').some((one) => bare(one) === bare(tag) || one.trim() === '*')
}
