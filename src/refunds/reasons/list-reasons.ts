import { and, asc, eq, isNull } from 'drizzle-orm'
import type { Context } from '../../context.ts'
import { refundReasons } from '../../db/schema.ts'

/** The most reasons that an account offers. */
export const MAX_REASONS = 50

/** A reason that people choose from when they ask for a refund. */
export type RefundReason = { id: number; label: string }

/** Lists the reasons that an account offers, in its order; none if it keeps no list of its own. */
export async function listReasons(
  { db }: Pick<Context, 'db'>,
  merchantCode: string,
): Promise<RefundReason[]> {
  const r = refundReasons
  return await db
    .select({ id: r.id, label: r.label })
    .from(r)
    .where(and(eq(r.merchantCode, merchantCode), isNull(r.endedAt)))
    .orderBy(asc(r.position), asc(r.id))
    .limit(MAX_REASONS)
}
