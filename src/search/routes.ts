import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals } from '../http/describe.ts'
import { Id, MerchantCode } from '../http/fields.ts'
import { DEFAULT_LIMIT, describePage, pageParameters, respondPage } from '../http/list.ts'
import { findObjects, SearchHit } from './find-objects.ts'

const search = createRoute({
  method: 'get',
  path: '/v1/search',
  operationId: 'search',
  summary: 'Find transactions, payments and refunds by an id, an order, a reference or an amount',
  description:
    'Exact matches come first, then those that begin with the text (at least 3 characters), then those of the amount. Refunds are found by keys that also have the scope `refunds:read`.',
  tags: ['Search'],
  ...withScope('payments:read'),
  request: {
    query: z.strictObject({
      q: Id.openapi({
        description:
          'An id of a transaction, a payment or a refund, an order id, a transaction id of yours, the id of a refund at the gateway, or an amount',
        example: 'DH1',
      }),
      limit: pageParameters.limit,
      merchantCode: MerchantCode,
    }),
  },
  responses: { 200: describePage(SearchHit, 'What was found'), ...describeRefusals() },
})

/** Creates the merchants' route to find objects. */
export function searchRoutes(ctx: Context) {
  return createRouter().openapi(search, async (c) => {
    const { q, limit = DEFAULT_LIMIT, merchantCode } = c.req.valid('query')
    const access = c.get('access')
    const withRefunds = access.scopes.includes('refunds:read')
    const merchants = narrowMerchants(access, merchantCode)
    const data = await ctx.reads.run(access.chainId, (db) =>
      findObjects(db, merchants, q.trim(), { withRefunds, limit }),
    )
    return respondPage(c, { data, nextCursor: null }, SearchHit)
  })
}
