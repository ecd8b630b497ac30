import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import { readPage, serveListing } from '../access/listing.ts'
import { invalidField } from '../errors.ts'
import { createRouter } from '../http/app.ts'
import {
  BODY_REFUSALS,
  describeEmptyResponse,
  describeRefusals,
  describeResponse,
} from '../http/describe.ts'
import { Id, MerchantCode, WaitParameter } from '../http/fields.ts'
import { cutPage, DEFAULT_LIMIT, describePage, pageParameters, respondPage } from '../http/list.ts'
import { findTransaction, waitForTransaction } from './find-transaction.ts'
import { TRANSACTIONS } from './find-transactions.ts'
import { requestSync } from './request-sync.ts'
import { readTimeline, TimelineEntry, type TimelineRow } from './timeline.ts'
import type { FoundTransaction, TransactionsContext } from './types.ts'
import { answerFound, isUnchanged, showTransaction, Transaction } from './view.ts'

const params = z.object({ transactionId: Id })
const merchantCode = MerchantCode
const NOT_FOUND = ['transaction_not_found', 'ambiguous_merchant'] as const
const shared = { tags: ['Transactions'], ...withScope('payments:read') }

const readOne = createRoute({
  method: 'get',
  path: '/v1/transactions/{transactionId}',
  operationId: 'readTransaction',
  summary: 'One transaction with its payments',
  description:
    'With `wait` and `If-None-Match`, responds as soon as the transaction differs, or with 304 at the timeout. ' +
    'With `wait` alone, responds as soon as the transaction is final, or with its current state at the timeout. ' +
    'An id that is not known yet is waited for as well, and is 404 only at the timeout: ask before the first notification.',
  ...shared,
  request: {
    params,
    query: z.strictObject({ wait: WaitParameter, merchantCode }),
    headers: z.object({
      'if-none-match': z
        .string()
        .optional()
        .describe(
          'The `ETag` of an earlier response, e.g. `W/"0.7"`, or several: 304 if one of them still matches',
        ),
    }),
  },
  responses: {
    200: describeResponse(
      'The transaction; `ETag` changes with every visible change',
      Transaction,
      'ETag',
    ),
    304: describeEmptyResponse('Unchanged: the `ETag` matches `If-None-Match`', 'ETag'),
    ...describeRefusals(...NOT_FOUND),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/transactions',
  operationId: 'listTransactions',
  summary: 'Transactions, newest first',
  ...shared,
  request: { query: z.strictObject({ ...TRANSACTIONS.query, merchantCode, ...pageParameters }) },
  responses: { 200: describePage(Transaction), ...describeRefusals('cursor_expired') },
})

const sync = createRoute({
  method: 'post',
  path: '/v1/transactions/{transactionId}/sync',
  operationId: 'syncTransaction',
  summary: 'Query the gateway now; registers a transaction whose notification never came',
  description:
    'An id that is new is `unconfirmed` (`sync.status`) until the gateway answers about it or notifies it: such a transaction is in no list, and is deleted `SYNC_REPOLL_FOR_MS` after the last request.',
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
    202: describeResponse('The query is due', Transaction),
    ...describeRefusals(
      ...BODY_REFUSALS,
      'merchant_not_found',
      'ambiguous_merchant',
      'too_many_unconfirmed',
    ),
  },
})

const timeline = createRoute({
  method: 'get',
  path: '/v1/transactions/{transactionId}/timeline',
  operationId: 'readTimeline',
  summary: 'Everything that happened to a transaction, oldest first',
  description:
    'Includes refund steps, and discrepancies that name a refund, for keys that also have the scope `refunds:read`.',
  ...shared,
  request: { params, query: z.strictObject({ merchantCode, ...pageParameters }) },
  responses: {
    200: describePage(TimelineEntry),
    ...describeRefusals(...NOT_FOUND, 'cursor_expired'),
  },
})

export function transactionRoutes(ctx: TransactionsContext) {
  return createRouter()
    .openapi(readOne, async (c) => {
      const { transactionId } = c.req.valid('param')
      const query = c.req.valid('query')
      const etags = c.req.valid('header')['if-none-match']
      const merchants = narrowMerchants(c.get('access'), query.merchantCode)
      const wanted = { merchants, transactionId }
      const done = (found: FoundTransaction) =>
        etags === undefined ? found.transaction.final : !isUnchanged(found, etags)
      const found =
        query.wait === undefined
          ? await findTransaction(ctx, merchants, transactionId)
          : await waitForTransaction(ctx, wanted, done, query.wait * 1000, c.req.raw.signal)
      const { status, headers, body } = answerFound(found, etags)
      return c.newResponse(body, status, headers)
    })
    .openapi(list, (c) => serveListing(ctx, c, TRANSACTIONS, c.req.valid('query')))
    .openapi(sync, async (c) => {
      const { transactionId } = c.req.valid('param')
      const access = c.get('access')
      const { merchantCode: inQuery } = c.req.valid('query')
      const named = resolveMerchantCode(c.req.valid('json')?.merchantCode, inQuery)
      const merchants = narrowMerchants(access, named)
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
      const { scopes, chainId } = c.get('access')
      const request = { transaction, withRefunds: scopes.includes('refunds:read'), limit }
      const locate = ({ position }: TimelineRow) => position
      const page = await ctx.db.reads.run(chainId, (db) =>
        readPage(db.sql, cursor, undefined, async (after) => {
          const rows = await readTimeline({ ...ctx, db }, { ...request, after })
          return cutPage({ rows }, limit, locate, ({ entry }) => entry)
        }),
      )
      return respondPage(c, page, TimelineEntry)
    })
}

function resolveMerchantCode(inBody: string | undefined, inQuery: string | undefined) {
  if (inBody !== undefined && inQuery !== undefined && inBody !== inQuery) {
    throw invalidField('merchantCode', 'differs between the body and the query')
  }
  return inBody ?? inQuery
}
