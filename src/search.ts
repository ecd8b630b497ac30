import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from './access/authenticate.ts'
import type { Context } from './context.ts'
import { createRouter } from './http/app.ts'
import { describeRefusals } from './http/describe.ts'
import { Id, MerchantCode } from './http/fields.ts'
import { DEFAULT_LIMIT, describePage, pageParameters, respondPage } from './http/list.ts'
import { parseAmount, readWrittenAmount } from './money.ts'
import type { Sql } from './platform/postgres/types.ts'

/** An object that a search found, and the member that matched. */
export const SearchHit = z
  .strictObject({
    type: z.enum(['transaction', 'payment', 'refund']),
    id: z.string(),
    merchantCode: z.string(),
    transactionId: Id,
    matched: z.enum([
      'transactionId',
      'orderId',
      'merchantTxnId',
      'paymentId',
      'refundId',
      'gatewayRefundId',
      'gatewayReference',
      'amount',
    ]),
  })
  .openapi('SearchHit', {
    example: {
      type: 'transaction',
      id: '240830080146NDTISR',
      merchantCode: 'UFLIYL',
      transactionId: '240830080146NDTISR',
      matched: 'orderId',
    },
  })

export type SearchHit = z.infer<typeof SearchHit>

/** A look-up by one index: of the rows from a value on, in the index's order. */
export type Lookup = {
  type: SearchHit['type']
  matched: SearchHit['matched']
  table: 'transactions' | 'payments' | 'refunds'
  /** The column of the object's id. */
  id: string
  column: string
  from: string
  /** The last value; undefined where only the text itself shows where its prefix ends. */
  to?: string | undefined
  /** The order of the index; by default that of the column. */
  order?: string
  /** What its column is compared with, where the texts have to be compared. */
  text?: string
  /** Where its hits come: 0 exact, 1 with the prefix, 2 of the amount; undefined where the texts have to be compared. */
  rank?: number
}

/** A shorter text is only compared as a whole. */
const MIN_PREFIX = 3

/** Lists the look-ups that a text calls for. */
export function planLookups(text: string, withRefunds: boolean): Lookup[] {
  const byText = findText(text)
  const transaction = { type: 'transaction', table: 'transactions', id: 'transaction_id' } as const
  const payment = { type: 'payment', table: 'payments', id: 'payment_id' } as const
  const refund = { type: 'refund', table: 'refunds', id: 'refund_id' } as const
  const ofRefunds: Lookup[] = [
    ...findRefundIds(text).map((range) => ({ ...refund, ...range })),
    { ...refund, ...byText, matched: 'gatewayRefundId', column: 'gateway_refund_id' },
    { ...refund, ...byText, matched: 'gatewayReference', column: 'notified_reference' },
    ...findAmounts(text, { ...refund, order: 'amount desc, requested_at desc, refund_id desc' }),
  ]
  return [
    { ...transaction, ...byText, matched: 'transactionId', column: 'transaction_id' },
    ...listSpellings(text).map((spelling) => ({
      ...transaction,
      ...findText(spelling),
      matched: 'orderId' as const,
      column: 'order_id',
    })),
    { ...transaction, ...byText, matched: 'merchantTxnId', column: 'merchant_txn_id' },
    { ...payment, ...byText, matched: 'paymentId', column: 'payment_id' },
    ...findAmounts(text, { ...payment, order: 'amount desc, first_seen_at desc, payment_id desc' }),
    ...(withRefunds ? ofRefunds : []),
  ]
}

function findText(text: string) {
  return { text, from: text, to: text.length < MIN_PREFIX ? text : undefined }
}

/** The spellings of an order id: people write a `#` before it, and its letters small or large. */
function listSpellings(text: string): string[] {
  const bare = text.replace(/^#\s*/, '')
  const spellings = [text, bare, bare.toUpperCase(), bare.toLowerCase()]
  return [...new Set(spellings)].filter((spelling) => spelling !== '')
}

/** `1.110` may be a thousand, or one and a bit: then both are looked for. */
function findAmounts(text: string, of: Pick<Lookup, 'type' | 'table' | 'id' | 'order'>): Lookup[] {
  const amounts = new Set([parseAmount(text), readWrittenAmount(text)])
  const found = { ...of, matched: 'amount' as const, column: 'amount', rank: 2 }
  return [...amounts].flatMap((amount) =>
    amount === undefined ? [] : [{ ...found, from: amount, to: amount }],
  )
}

/** The ids of refunds are UUIDs: a prefix of their digits is a range. */
function findRefundIds(text: string) {
  const digits = text.toLowerCase().replaceAll('-', '')
  if (digits.length < MIN_PREFIX || !/^[0-9a-f]{1,32}$/.test(digits)) return []
  const pad = (digit: string) => digits.padEnd(32, digit)
  const rank = digits.length === 32 ? 0 : 1
  const found = { matched: 'refundId' as const, column: 'refund_id' }
  return [{ ...found, from: pad('0'), to: pad('f'), rank }]
}

/** Rows that one look-up reads of one account: it never depends on how many there are. */
const MAX_READ = 200

/** A hit with where it comes: 0 exact, 1 with the prefix, 2 of the amount. */
export type RankedHit = SearchHit & { rank: number }

/**
 * Each look-up reads a part of one index, from the text on. A collation that mixes other spellings among the ids with a
 * prefix can hide some of them; an exact id is always found.
 * @returns exact matches first, then those with the prefix, then those of the amount; each object once
 */
export async function findObjects(...given: Parameters<typeof rankObjects>): Promise<SearchHit[]> {
  return (await rankObjects(...given)).map(({ rank: _, ...hit }) => hit)
}

/** The same, each with its rank. */
export async function rankObjects(
  { sql }: Pick<Context, 'sql'>,
  merchants: readonly string[],
  text: string,
  { withRefunds, limit }: { withRefunds: boolean; limit: number },
): Promise<RankedHit[]> {
  const [first, ...others] = planLookups(text, withRefunds).map((lookup) =>
    selectHits(sql, merchants, lookup),
  )
  if (!first) return []
  const all = others.reduce((one, another) => sql`${one} union all ${another}`, first)
  const rows = await sql<RankedHit[]>`select * from (${all}) as hits order by rank, place`
  const hits = new Map<string, RankedHit>()
  for (const { type, id, merchantCode, transactionId, matched, rank } of rows) {
    const key = JSON.stringify([type, merchantCode, id])
    if (!hits.has(key)) hits.set(key, { type, id, merchantCode, transactionId, matched, rank })
  }
  return [...hits.values()].slice(0, limit)
}

function selectHits(
  sql: Sql,
  merchants: readonly string[],
  { type, table, id, matched, column, from, to, order = column, rank, text = '' }: Lookup,
) {
  const name = sql.unsafe(column)
  const until = to === undefined ? sql`` : sql`and ${name} <= ${to}`
  const isWanted = rank === undefined ? sql`starts_with(o.found, ${text})` : sql`true`
  // What is only asked for by its id is in no list until the gateway knows it.
  const isHidden = table === 'transactions' ? sql`unconfirmed` : sql`false`
  const isExact = sql`case when o.found = ${text} then 0 else 1 end`
  return sql`(
    select ${type}::text as type, o.id::text as id, o.merchant_code as "merchantCode",
      o.transaction_id as "transactionId", ${matched}::text as matched,
      ${rank === undefined ? isExact : sql.unsafe(String(rank))} as rank, row_number() over () as place
    from json_array_elements_text(${JSON.stringify(merchants)}::json) as account cross join lateral (
      select merchant_code, transaction_id, ${sql.unsafe(id)} as id, ${name}::text as found,
        ${isHidden} as hidden
      from ${sql.unsafe(table)} where merchant_code = account and ${name} >= ${from} ${until}
      order by ${sql.unsafe(order)} limit ${sql.unsafe(String(MAX_READ))}
    ) as o where not o.hidden and ${isWanted} limit ${sql.unsafe(String(MAX_READ))})`
}

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
          'An id of a transaction, a payment or a refund, an order id in any case and with or without `#`, a transaction id of yours, the id of a refund at the gateway, or an amount as people write it',
        example: 'DH1',
      }),
      limit: pageParameters.limit,
      merchantCode: MerchantCode,
    }),
  },
  responses: { 200: describePage(SearchHit, 'What was found'), ...describeRefusals() },
})

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
