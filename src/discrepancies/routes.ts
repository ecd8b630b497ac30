import { createRoute, z } from '@hono/zod-openapi'
import { desc, eq, sql } from 'drizzle-orm'
import { withScope } from '../access/authenticate.ts'
import { type Listing, serveListing } from '../access/listing.ts'
import type { Context } from '../context.ts'
import type { OrderIds } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals } from '../http/describe.ts'
import { MerchantCode } from '../http/fields.ts'
import { cutPage, describePage, type Position, pageParameters } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { cutRead, EXAMINATION, type PageRead, pickNewest } from '../platform/postgres/list-page.ts'
import type { DiscrepancyRow } from './types.ts'
import { Discrepancy, KindName, showDiscrepancy } from './view.ts'

const OF_TRANSACTION = byKey('t', ['merchant_code', 'transaction_id'], 'discrepancies')

/** Null for a discrepancy whose transaction is unknown. */
const orderColumn = sql<OrderIds | null>`(
  select json_build_object('orderId', t.order_id, 'merchantTxnId', t.merchant_txn_id)
  from transactions as t where ${sql.raw(OF_TRANSACTION)} limit 1)`

/** Lists discrepancies, newest first. */
export async function listDiscrepancies(
  { db }: Pick<Context, 'db'>,
  { merchants, kind }: { merchants: readonly string[]; kind?: string | undefined },
  limit: number,
  after: Position | undefined,
): Promise<PageRead<DiscrepancyRow>> {
  const d = discrepancies
  const filter = kind === undefined ? undefined : eq(d.kind, kind)
  const newest = pickNewest(
    db,
    { merchantCode: d.merchantCode, time: d.at, id: d.id },
    { merchants, filter, limit, after },
  )
  const rows = await db
    .with(newest)
    .select({ discrepancy: d, order: orderColumn, ...EXAMINATION })
    .from(d)
    .orderBy(desc(d.at), desc(d.id), desc(d.merchantCode))
    .prepare('list_discrepancies')
    .execute()
  const listed = rows.map(({ discrepancy, order, ...examination }) => ({
    ...discrepancy,
    ...(order ?? NO_ORDER),
    ...examination,
  }))
  return cutRead(listed, limit)
}

const NO_ORDER: OrderIds = { orderId: null, merchantTxnId: null }

const query = {
  kind: KindName.optional().openapi({ description: 'Only discrepancies of this kind' }),
}

/** Discrepancies, newest first. */
export const DISCREPANCIES: Listing<typeof query, z.infer<typeof Discrepancy>> = {
  name: 'discrepancies',
  scope: 'ops',
  query,
  // They are numbers that fit in a bigint.
  idForm: z.string().regex(/^\d{1,18}$/),
  schema: Discrepancy,
  async read(ctx, filter, limit, after) {
    const rows = await listDiscrepancies(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, showDiscrepancy)
  },
}

const locate = ({ at, id, merchantCode }: DiscrepancyRow) => ({
  time: at,
  id: String(id),
  merchantCode,
})

const list = createRoute({
  method: 'get',
  path: '/v1/discrepancies',
  operationId: 'listDiscrepancies',
  summary: 'Discrepancies with both of their sides, newest first',
  tags: ['Discrepancies'],
  ...withScope('ops'),
  request: {
    query: z.strictObject({
      ...DISCREPANCIES.query,
      merchantCode: MerchantCode,
      ...pageParameters,
    }),
  },
  responses: { 200: describePage(Discrepancy), ...describeRefusals() },
})

/** Creates the operators' route on discrepancies. */
export function discrepancyRoutes(ctx: Context) {
  return createRouter().openapi(list, (c) =>
    serveListing(ctx, c, DISCREPANCIES, c.req.valid('query')),
  )
}
