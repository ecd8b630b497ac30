import { createRoute, z } from '@hono/zod-openapi'
import { desc, eq, sql } from 'drizzle-orm'
import { withScope } from '../access/authenticate.ts'
import { type Filter, type Listing, type ListingContext, serveListing } from '../access/listing.ts'
import type { Context } from '../context.ts'
import type { OrderIds } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import { createRouter } from '../http/app.ts'
import { describeRefusals } from '../http/describe.ts'
import { Id, MerchantCode, MerchantTxnId, OrderId, Time, TimeParameter } from '../http/fields.ts'
import { cutPage, describePage, type Position, pageParameters } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { cutRead, EXAMINATION, type PageRead, pickNewest } from '../platform/postgres/list-page.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { DISCREPANCY_KINDS, type DiscrepancyRow, describeKind } from './kinds.ts'

const KindName = z.enum(Object.keys(DISCREPANCY_KINDS))

const Side = z.strictObject({
  source: z
    .string()
    .openapi({ description: 'service, query, earlier_query, notification, settings or person' }),
  says: z.string().openapi({ description: 'Amounts in it are exact decimals' }),
})

export const Discrepancy = z
  .strictObject({
    id: z.string(),
    kind: KindName,
    merchantCode: z.string(),
    transactionId: Id,
    orderId: OrderId,
    merchantTxnId: MerchantTxnId,
    paymentId: Id.nullable(),
    refundId: z.uuid().nullable(),
    ours: Side,
    theirs: Side,
    times: z.int().openapi({ description: 'How often it was observed' }),
    firstSeenAt: Time,
    lastSeenAt: Time,
    resolvedAt: Time.nullable().openapi({
      description:
        'When the sides agreed again, or a person resolved it; null while they differ, and for kinds where agreement cannot be detected',
    }),
    resolution: z.strictObject({ by: z.string(), reason: z.string() }).nullable().openapi({
      description:
        "A person's decision: the name of the API key or the person, and the reason. Null when the sides agreed again by themselves",
    }),
    assignee: z.string().nullable(),
    notes: z.array(z.strictObject({ at: Time, by: z.string(), text: z.string() })),
  })
  .openapi('Discrepancy', {
    example: {
      ...{ id: '17', kind: 'answer_went_backwards', merchantCode: 'UFLIYL' },
      ...{ transactionId: '240830080146NDTISR', orderId: 'DH1', merchantTxnId: 'T1' },
      ...{ paymentId: '1439211', refundId: null, times: 1 },
      ours: { source: 'earlier_query', says: 'status SUCCESS' },
      theirs: { source: 'query', says: 'status FAILED' },
      firstSeenAt: '2026-11-22T09:33:05.120Z',
      lastSeenAt: '2026-11-22T09:33:05.120Z',
      ...{ resolvedAt: null, resolution: null, assignee: null, notes: [] },
    },
  })

export type DiscrepancyView = z.infer<typeof Discrepancy>

export function showDiscrepancy(row: DiscrepancyRow): DiscrepancyView {
  const { kind, merchantCode, transactionId, orderId, merchantTxnId, paymentId, refundId } = row
  const { times, assignee, notes, resolvedBy: by, resolution: reason } = row
  const source = describeKind(kind)
  return {
    id: String(row.id),
    ...{ kind, merchantCode, transactionId, orderId, merchantTxnId, paymentId, refundId },
    ours: { source: source.ours, says: row.ours },
    theirs: { source: source.theirs, says: row.theirs },
    times,
    firstSeenAt: toIso(row.at),
    lastSeenAt: toIso(row.lastSeenAt ?? row.at),
    resolvedAt: toIso(row.resolvedAt),
    resolution: by === null ? null : { by, reason: reason ?? '' },
    ...{ assignee, notes },
  }
}

const OF_TRANSACTION = byKey('t', ['merchant_code', 'transaction_id'], 'discrepancies')

/** Null for a discrepancy whose transaction is unknown. */
const orderColumn = sql<OrderIds | null>`(
  select json_build_object('orderId', t.order_id, 'merchantTxnId', t.merchant_txn_id)
  from transactions as t where ${sql.raw(OF_TRANSACTION)} limit 1)`

const FILTERS = {
  kind: KindName.optional().describe('Only discrepancies of this kind'),
  from: TimeParameter,
  to: TimeParameter,
}

type DiscrepancyFilter = Omit<Filter<typeof FILTERS>, 'coversAll'>

export async function listDiscrepancies(
  { db: { drizzle } }: Pick<ListingContext, 'db'>,
  { merchants, kind, from, to }: DiscrepancyFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<DiscrepancyRow>> {
  const d = discrepancies
  const filter = kind === undefined ? undefined : eq(d.kind, kind)
  const key = { merchantCode: d.merchantCode, time: d.at, id: d.id }
  const newest = pickNewest(drizzle, key, { merchants, filter, from, to, limit, after })
  const rows = await drizzle
    .with(newest)
    .select({ discrepancy: d, order: orderColumn, ...EXAMINATION })
    .from(d)
    .orderBy(desc(d.at), desc(d.id), desc(d.merchantCode))
    .prepare('list_discrepancies')
    .execute()
  const listed = rows.map(({ discrepancy, order, ...examination }) => {
    return { ...discrepancy, ...(order ?? NO_ORDER), ...examination }
  })
  return cutRead(listed, limit)
}

const NO_ORDER: OrderIds = { orderId: null, merchantTxnId: null }

export const DISCREPANCIES: Listing<typeof FILTERS, z.infer<typeof Discrepancy>> = {
  name: 'discrepancies',
  scope: 'ops',
  query: FILTERS,
  // Ids are numbers that fit in a bigint.
  idForm: z.string().regex(/^\d{1,18}$/),
  schema: Discrepancy,
  async read(ctx, filter, limit, after) {
    const rows = await listDiscrepancies(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, showDiscrepancy)
  },
}

const locate = ({ at: time, id, merchantCode }: DiscrepancyRow) => {
  return { time, id: String(id), merchantCode }
}

const list = createRoute({
  method: 'get',
  path: '/v1/discrepancies',
  operationId: 'listDiscrepancies',
  summary: 'Discrepancies with both of their sides, newest first',
  tags: ['Discrepancies'],
  ...withScope('ops'),
  request: { query: z.strictObject({ ...FILTERS, merchantCode: MerchantCode, ...pageParameters }) },
  responses: { 200: describePage(Discrepancy), ...describeRefusals('cursor_expired') },
})

export function discrepancyRoutes(ctx: Context) {
  return createRouter().openapi(list, (c) =>
    serveListing(ctx, c, DISCREPANCIES, c.req.valid('query')),
  )
}
