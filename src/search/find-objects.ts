import type { Context } from '../context.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { type Lookup, planLookups } from './plan-lookups.ts'
import type { SearchHit } from './view.ts'

/** Rows that one look-up reads of one account: it never depends on how many there are. */
const MAX_READ = 200

type Row = SearchHit & { rank: number; place: number }

/**
 * Finds transactions, payments and refunds by an id, an order id, a reference or an amount. Each look-up reads a part of
 * one index, from the text on. A collation that mixes other spellings among the ids with a prefix can hide some of them;
 * an exact id is always found.
 * @param text at least three characters to be a prefix
 * @param withRefunds whether the caller may read refunds
 * @returns exact matches first, then those with the prefix, then those of the amount; each object once
 */
export async function findObjects(
  { sql }: Pick<Context, 'sql'>,
  merchants: readonly string[],
  text: string,
  { withRefunds, limit }: { withRefunds: boolean; limit: number },
): Promise<SearchHit[]> {
  const [first, ...others] = planLookups(text, withRefunds).map((lookup) =>
    selectHits(sql, merchants, text, lookup),
  )
  if (!first) return []
  const all = others.reduce((one, another) => sql`${one} union all ${another}`, first)
  const rows = await sql<Row[]>`select * from (${all}) as hits order by rank, place`
  const hits = new Map<string, SearchHit>()
  for (const { type, id, merchantCode, transactionId, matched } of rows) {
    const key = JSON.stringify([type, merchantCode, id])
    if (!hits.has(key)) hits.set(key, { type, id, merchantCode, transactionId, matched })
  }
  return [...hits.values()].slice(0, limit)
}

function selectHits(
  sql: Sql,
  merchants: readonly string[],
  text: string,
  { type, table, id, matched, column, from, to, order = column, rank }: Lookup,
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
