import { desc, eq } from 'drizzle-orm'
import type { Context } from '../context.ts'
import { pickNewest } from '../db/newest.ts'
import { discrepancies } from '../db/schema.ts'
import type { Position } from '../http/page.ts'
import type { DiscrepancyRow } from './view.ts'

/** Disagreements, newest first; more than `limit` of them say that there is a next page. */
export function listDiscrepancies(
  ctx: Context,
  { merchants, kind }: { merchants: readonly string[]; kind?: string | undefined },
  limit: number,
  after: Position | undefined,
): Promise<DiscrepancyRow[]> {
  const d = discrepancies
  const filter = kind === undefined ? undefined : eq(d.kind, kind)
  const newest = pickNewest(
    ctx.db,
    { merchantCode: d.merchantCode, time: d.at, id: d.id },
    { merchants, filter, limit, after },
  )
  return ctx.db
    .with(newest)
    .select()
    .from(d)
    .orderBy(desc(d.at), desc(d.id), desc(d.merchantCode))
    .prepare('list_discrepancies')
    .execute()
}
