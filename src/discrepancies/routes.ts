import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { answers, createRouter, MerchantCode } from '../http/input.ts'
import { cutPage, DEFAULT_LIMIT, pageOf, pageParameters, readCursor } from '../http/page.ts'
import { refuses } from '../http/refusals.ts'
import { listDiscrepancies } from './find.ts'
import { Discrepancy, type DiscrepancyRow, KindName, showDiscrepancy } from './view.ts'

const list = createRoute({
  method: 'get',
  path: '/v1/discrepancies',
  operationId: 'listDiscrepancies',
  summary: 'Both sides of every disagreement, newest first',
  tags: ['Discrepancies'],
  ...withScope('ops'),
  request: {
    query: z.strictObject({
      kind: KindName.optional().openapi({ description: 'Only those of it' }),
      merchantCode: MerchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: answers('A page', pageOf(Discrepancy)), ...refuses() },
})

/** Ids of this list are numbers that fit a bigint. */
const NUMBER = z.string().regex(/^\d{1,18}$/)

/** The operators' route on disagreements. */
export function discrepancyRoutes(ctx: Context) {
  return createRouter().openapi(list, async (c) => {
    const { limit = DEFAULT_LIMIT, cursor, merchantCode, kind } = c.req.valid('query')
    const merchants = narrowMerchants(c.get('access'), merchantCode)
    const after = readCursor(cursor, NUMBER)
    const rows = await listDiscrepancies(ctx, { merchants, kind }, limit, after)
    return c.json(cutPage(rows, limit, locate, showDiscrepancy), 200)
  })
}

function locate({ at, id, merchantCode }: DiscrepancyRow) {
  return { time: at, id: String(id), merchantCode }
}
