import { byExpressions } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type HashedEntry, selectEntry, WITHOUT_ACCOUNT } from './entry-hash.ts'

/** Some entries by their ids; `upTo` is the id of the last. */
export type EntryBatch = { count: number; upTo: number; unchained: HashedEntry[] }

/** Reads the entries after an id, and keeps those that are not in the chain of their account. */
export async function readBatch(tx: Tx, after: number, limit: number): Promise<EntryBatch> {
  const rows = await tx<(HashedEntry & { chained: boolean })[]>`
    select ${tx.unsafe(selectEntry('e'))}, l.entry_id is not null as chained
    from ${selectLinked(tx, after, limit)}
    order by e.id`
  const unchained = rows.flatMap(({ chained, ...entry }) => (chained ? [] : [entry]))
  return { count: rows.length, upTo: rows.at(-1)?.id ?? after, unchained }
}

/**
 * The entries after an id as `e`, each with its link as `l`, whose columns are null without one. For the `from` of a
 * statement; read by primary key and one index alone.
 */
export const selectLinked = (tx: Tx, after: number, limit: number) => tx`
  (
    select * from audit_entries where id > ${after} order by id limit ${tx.unsafe(String(limit))}
  ) as e left join lateral (
    select l.entry_id from audit_links as l
    where l.merchant_code = coalesce(e.merchant_code, ${WITHOUT_ACCOUNT})
      and ${tx.unsafe(byExpressions(['l.entry_id'], ['e.id']))} limit 1
  ) as l on true`
