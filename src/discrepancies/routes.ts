import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import {
  cutPage,
  DEFAULT_LIMIT,
  describePage,
  pageParameters,
  readCursor,
  respondPage,
} from '../http/list.ts'
import { listDiscrepancies } from './list-discrepancies.ts'
import type { DiscrepancyRow } from './types.ts'
import { Discrepancy, KindName, showDiscrepancy } from './view.ts'

const list = createRoute({
  method: 'get',
  path: '/v1/discrepancies',
  operationId: 'listDiscrepancies',
  summary: 'Discrepancies with both of their sides, newest first',
  tags: ['Discrepancies'],
  ...withScope('ops'),
  request: {
    query: z.strictObject({
      kind: KindName.optional().openapi({ description: 'Only discrepancies of this kind' }),
      merchantCode: MerchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: describePage(Discrepancy), ...describeRefusals() },
})

/** Ids of this list are numbers that fit in a bigint. */
const BIGINT_ID = z.string().regex(/^\d{1,18}$/)

/** Creates the operators' route on discrepancies. */
export function discrepancyRoutes(ctx: Context) {
  return createRouter().openapi(list, async (c) => {
    const { limit = DEFAULT_LIMIT, cursor, merchantCode, kind } = c.req.valid('query')
    const merchants = narrowMerchants(c.get('access'), merchantCode)
    const after = readCursor(cursor, BIGINT_ID)
    const rows = await ctx.reads.run(c.get('access').chainId, (db) =>
      listDiscrepancies(db, { merchants, kind }, limit, after),
    )
    return respondPage(c, cutPage(rows, limit, locate, showDiscrepancy), Discrepancy)
  })
}

function locate({ at, id, merchantCode }: DiscrepancyRow) {
  return { time: at, id: String(id), merchantCode }
}
