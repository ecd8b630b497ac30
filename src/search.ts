import { createRoute, z } from '@hono/zod-openapi'
import { narrowMerchants, withScope } from './access/authenticate.ts'
import type { Context } from './context.ts'
import { createRouter } from './http/app.ts'
import { describeRefusals } from './http/describe.ts'
import { Id, MerchantCode } from './http/fields.ts'
import { DEFAULT_LIMIT, describePage, pageParameters, respondPage } from './http/list.ts'
import { parseAmount, readWrittenAmount } from './money.ts'
import type { Sql } from './platform/postgres/types.ts'

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
type RankedHit = SearchHit & { rank: number }

/** A part of an index: the rows from a value on, in the order of the index. */
type Range = {
  from: string
  /** The last value; undefined if the part ends with the last text that begins with `from`. */
  to?: string | undefined
  /** The rank of its hits: 0 exact, 1 by prefix, 2 by amount; undefined if each text has to be compared. */
  rank?: number
}

type Searched = {
  type: SearchHit['type']
  matched: SearchHit['matched']
  column: string
  /** Returns the parts to read for a text. @param prefixes how order ids of the accounts begin */
  find: (text: string, prefixes: readonly string[]) => Range[]
  order?: string
}

/** The columns that are searched. Each is the first of an index, after the account. */
const SEARCHED: readonly Searched[] = [
  { type: 'transaction', matched: 'transactionId', column: 'transaction_id', find: findText },
  { type: 'transaction', matched: 'orderId', column: 'order_id', find: findOrders },
  { type: 'transaction', matched: 'merchantTxnId', column: 'merchant_txn_id', find: findText },
  { type: 'payment', matched: 'paymentId', column: 'payment_id', find: findText },
  {
    ...{ type: 'payment', matched: 'amount', column: 'amount', find: findAmounts },
    order: 'amount desc, first_seen_at desc, payment_id desc',
  },
  { type: 'refund', matched: 'refundId', column: 'refund_id', find: findRefundIds },
  { type: 'refund', matched: 'gatewayRefundId', column: 'gateway_refund_id', find: findText },
  { type: 'refund', matched: 'gatewayReference', column: 'notified_reference', find: findText },
  {
    ...{ type: 'refund', matched: 'amount', column: 'amount', find: findAmounts },
    order: 'amount desc, requested_at desc, refund_id desc',
  },
]

/** A shorter text is only compared as a whole, not as a prefix. */
const MIN_PREFIX = 3

function findText(text: string): Range[] {
  return [{ from: text, to: text.length < MIN_PREFIX ? text : undefined }]
}

/**
 * Returns the spellings of an order id. People write it with or without `#`, in small or capital letters, or only its
 * digits, which are no exact match because they may also be an amount.
 */
function findOrders(text: string, prefixes: readonly string[]): Range[] {
  const bare = text.replace(/^#\s*/, '')
  const [, letters = '', digits = ''] = /^([^0-9]*)(.*)$/s.exec(bare) ?? []
  const inEveryCase = (one: string) => [one, one.toUpperCase(), one.toLowerCase()]
  const spelt = inEveryCase(bare)
  if (letters === '') {
    const wholes = digits === '' ? [] : ['#', ...prefixes].map((prefix) => prefix + digits)
    return [
      ...[...new Set([text, ...spelt])].filter((one) => one !== '').flatMap(findText),
      ...[...new Set(wholes)].map((whole) => ({ from: whole, to: whole, rank: 1 })),
    ]
  }
  const known = prefixes.map((prefix) => prefix.replace('#', '').slice(0, letters.length))
  const same = known.filter((prefix) => prefix.toLowerCase() === letters.toLowerCase())
  spelt.push(...same.flatMap((prefix) => inEveryCase(digits).map((end) => prefix + end)))
  return [...new Set([text, ...spelt, ...spelt.map((one) => `#${one}`)])].flatMap(findText)
}

const NEWEST = 50
const MAX_PREFIXES = 20

/** Lists how the newest order ids of each account begin, up to the first digit, the most frequent first. */
async function listOrderPrefixes(sql: Sql, merchants: readonly string[]): Promise<string[]> {
  const rows = await sql<{ prefix: string }[]>`
    select prefix from json_array_elements_text(${JSON.stringify(merchants)}::json) as account cross join lateral (
      select regexp_replace(order_id, '[0-9].*$', '') as prefix
      from transactions where merchant_code = account
      order by first_seen_at desc, transaction_id desc limit ${sql.unsafe(String(NEWEST))}
    ) as newest
    where prefix <> '' group by prefix
    order by count(*) desc, prefix limit ${sql.unsafe(String(MAX_PREFIXES))}`
  return rows.map(({ prefix }) => prefix)
}

/** `1.110` may be more than a thousand or just over one, so both are looked for. */
function findAmounts(text: string): Range[] {
  const amounts = new Set([parseAmount(text), readWrittenAmount(text)])
  return [...amounts].flatMap((amount) =>
    amount === undefined ? [] : [{ from: amount, to: amount, rank: 2 }],
  )
}

/** The ids of refunds are UUIDs, so a prefix of their digits is a range. */
function findRefundIds(text: string): Range[] {
  const digits = text.toLowerCase().replaceAll('-', '')
  if (digits.length < MIN_PREFIX || !/^[0-9a-f]{1,32}$/.test(digits)) return []
  const pad = (digit: string) => digits.padEnd(32, digit)
  return [{ from: pad('0'), to: pad('f'), rank: digits.length === 32 ? 0 : 1 }]
}

/** Rows that a look-up reads of each account at most. */
const MAX_READ = 200

/**
 * Each look-up reads a part of one index, from the text on. If the collation sorts other texts among those with the
 * prefix, some may not be found; an exact id always is.
 * @returns exact matches first, then those by prefix, then those by amount; each object once
 */
export async function findObjects(
  sql: Sql,
  merchants: readonly string[],
  text: string,
  { withRefunds, limit }: { withRefunds: boolean; limit: number },
): Promise<RankedHit[]> {
  const prefixes = await listOrderPrefixes(sql, merchants)
  const [first, ...others] = SEARCHED.filter(
    ({ type }) => type !== 'refund' || withRefunds,
  ).flatMap((searched) =>
    searched.find(text, prefixes).map((range) => selectHits(sql, merchants, searched, range)),
  )
  if (!first) return []
  const all = others.reduce((one, another) => sql`${one} union all ${another}`, first)
  const rows = await sql<RankedHit[]>`
    select type, id, "merchantCode", "transactionId", matched, rank from (${all}) as hits order by rank, place`
  const hits = new Map<string, RankedHit>()
  for (const hit of rows) {
    const key = JSON.stringify([hit.type, hit.merchantCode, hit.id])
    if (!hits.has(key)) hits.set(key, hit)
  }
  return [...hits.values()].slice(0, limit)
}

function selectHits(
  sql: Sql,
  merchants: readonly string[],
  { type, matched, column, order = column }: Searched,
  { from, to, rank }: Range,
) {
  const [table, id] = [sql.unsafe(`${type}s`), sql.unsafe(`${type}_id`)]
  const name = sql.unsafe(column)
  const until = to === undefined ? sql`` : sql`and ${name} <= ${to}`
  const isWanted = rank === undefined ? sql`starts_with(o.found, ${from})` : sql`true`
  // A transaction that was only asked for by its id is in no list until the gateway knows it.
  const isHidden = type === 'transaction' ? sql`unconfirmed` : sql`false`
  const isExact = sql`case when o.found = ${from} then 0 else 1 end`
  return sql`(
    select ${type}::text as type, o.id::text as id, o.merchant_code as "merchantCode",
      o.transaction_id as "transactionId", ${matched}::text as matched,
      ${rank === undefined ? isExact : sql.unsafe(String(rank))} as rank, row_number() over () as place
    from json_array_elements_text(${JSON.stringify(merchants)}::json) as account cross join lateral (
      select merchant_code, transaction_id, ${id} as id, ${name}::text as found,
        ${isHidden} as hidden
      from ${table} where merchant_code = account and ${name} >= ${from} ${until}
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
          'An id of a transaction, a payment or a refund, an order id (in any case, with or without `#`, or its digits alone, if it begins as one of the newest orders), a transaction id of yours, the id of a refund at the gateway, or an amount as people write it',
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
    const found = await ctx.db.reads.run(access.chainId, ({ sql }) =>
      findObjects(sql, merchants, q.trim(), { withRefunds, limit }),
    )
    const data = found.map(({ rank: _, ...hit }) => hit)
    return respondPage(c, { data, nextCursor: null }, SearchHit)
  })
}
