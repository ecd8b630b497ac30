import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import { andLimit } from '../db/client.ts'
import { discrepancies } from '../db/schema.ts'
import type { Position } from '../http/page.ts'
import type { DiscrepancyRow } from './view.ts'

/** Disagreements, newest first; one more than `limit`, which says that there is a next page. */
export function listDiscrepancies(
  ctx: Context,
  { merchants, kind }: { merchants: readonly string[]; kind?: string | undefined },
  limit: number,
  after: Position | undefined,
): Promise<DiscrepancyRow[]> {
  const d = discrepancies
  return ctx.db
    .select()
    .from(d)
    .where(
      and(
        inArray(d.merchantCode, [...merchants]),
        kind === undefined ? undefined : eq(d.kind, kind),
        after && sql`(${d.at}, ${d.id}) < (${after.time}::timestamptz, ${after.id}::bigint)`,
      ),
    )
    .orderBy(desc(d.at), andLimit(desc(d.id), limit + 1))
    .prepare('list_discrepancies')
    .execute()
}
