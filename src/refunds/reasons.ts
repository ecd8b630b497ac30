import { z } from '@hono/zod-openapi'
import { and, asc, eq, isNull } from 'drizzle-orm'
import { type Actor, recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { refundReasons } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'

/** The most reasons that an account offers. */
export const MAX_REASONS = 50

/** Lists the reasons that an account offers, in its order; none if it keeps no list of its own. */
export async function listReasons(
  { db }: Pick<Context, 'db'>,
  merchantCode: string,
): Promise<string[]> {
  const r = refundReasons
  const rows = await db
    .select({ label: r.label })
    .from(r)
    .where(and(eq(r.merchantCode, merchantCode), isNull(r.endedAt)))
    .orderBy(asc(r.position), asc(r.id))
    .limit(MAX_REASONS)
  return rows.map(({ label }) => label)
}

/** The text of a reason: one line that leaves room for a remark in the reason of a refund. */
export const ReasonLabel = z
  .string()
  .trim()
  .normalize('NFC')
  .refine((label) => label !== '' && [...label].length <= 80)
  .refine((label) => !/\p{Cc}/u.test(label) && label.isWellFormed())

/** Replaces the list of an account; an empty one stands for the usual reasons. Refunds keep their text. */
export async function saveReasons(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  { merchantCode, actor, operation }: { merchantCode: string; actor: Actor; operation: string },
  labels: readonly string[],
): Promise<void> {
  await runInTransaction(sql, async (tx) => {
    // Two lists are saved one after the other. Not `for update`: whoever records an attempt to send a refund share-locks the row.
    await tx`
      select from merchant_accounts where merchant_code = ${merchantCode} for no key update`
    await tx`
      update refund_reasons set ended_at = now()
      where merchant_code = ${merchantCode} and ended_at is null`
    const rows = labels.map((label, at) => ({ merchantCode, label, position: at + 1 }))
    if (rows.length > 0) await build(tx).insert(refundReasons).values(rows).onConflictDoNothing()
    await recordWrite(tx, log, actor, { operation, merchantCode, objectId: merchantCode })
  })
}
