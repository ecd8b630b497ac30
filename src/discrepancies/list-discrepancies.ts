import { desc, eq } from 'drizzle-orm'
import type { Context } from '../context.ts'
import { discrepancies } from '../db/schema.ts'
import type { Position } from '../platform/http/page.ts'
import { pickNewest } from '../platform/postgres/keyset-page.ts'
import type { DiscrepancyRow } from './types.ts'

/**
 * Lists discrepancies, newest first.
 * @returns more than `limit` rows if there is a next page
 */
export function listDiscrepancies(
  { db }: Pick<Context, 'db'>,
  { merchants, kind }: { merchants: readonly string[]; kind?: string | undefined },
  limit: number,
  after: Position | undefined,
): Promise<DiscrepancyRow[]> {
  const d = discrepancies
  const filter = kind === undefined ? undefined : eq(d.kind, kind)
  const newest = pickNewest(
    db,
    { merchantCode: d.merchantCode, time: d.at, id: d.id },
    { merchants, filter, limit, after },
  )
  return db
    .with(newest)
    .select()
    .from(d)
    .orderBy(desc(d.at), desc(d.id), desc(d.merchantCode))
    .prepare('list_discrepancies')
    .execute()
}
