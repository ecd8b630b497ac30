import type { Tx } from '../platform/postgres/types.ts'
import type { Chain } from './chains.ts'
import { type HashedEntry, selectEntry } from './entry-hash.ts'

/** A link, with its entry; null if that is gone. */
export type Link = { position: number; entryId: number; hash: Buffer; entry: HashedEntry | null }

/** Reads the links of a chain after a position, in order, `limit` at most. */
export async function readLinks(
  tx: Tx,
  merchantCode: string,
  after: number,
  limit: number,
): Promise<Link[]> {
  const rows = await tx<(Omit<Link, 'entry'> & HashedEntry)[]>`
    select l.position, l.entry_id as "entryId", l.hash, ${tx.unsafe(selectEntry('e'))}
    from (
      select position, entry_id, hash from audit_links
      where merchant_code = ${merchantCode} and position > ${after}
      order by merchant_code, position limit ${tx.unsafe(String(limit))}
    ) as l left join lateral (select * from audit_entries as e where e.id = l.entry_id limit 1) as e on true
    order by l.position`
  return rows.map(({ position, entryId, hash, ...entry }) => {
    return { position, entryId, hash, entry: entry.id === null ? null : entry }
  })
}

/** Reads links at or before the start of a chain, some at most. This service leaves none there. */
export async function readLinksBefore(
  tx: Tx,
  { merchantCode, startPosition }: Pick<Chain, 'merchantCode' | 'startPosition'>,
): Promise<Pick<Link, 'position' | 'entryId'>[]> {
  return await tx<Pick<Link, 'position' | 'entryId'>[]>`
    select position, entry_id as "entryId" from audit_links
    where merchant_code = ${merchantCode} and position <= ${startPosition}
    order by merchant_code, position limit 100`
}
