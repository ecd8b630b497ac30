import { z } from '@hono/zod-openapi'
import { eq } from 'drizzle-orm'
import { type Actor, recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { merchantAccounts } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'

export const MAX_REASONS = 50

/** Lists the reasons that an account offers, in its order. An empty list stands for the usual reasons. */
export async function listReasons(
  { db: { drizzle } }: Pick<Context, 'db'>,
  merchantCode: string,
): Promise<string[]> {
  const a = merchantAccounts
  const rows = await drizzle
    .select({ reasons: a.refundReasons })
    .from(a)
    .where(eq(a.merchantCode, merchantCode))
  return rows[0]?.reasons ?? []
}

/** One line that leaves room for a remark in the reason of a refund. */
export const ReasonLabel = z
  .string()
  .trim()
  .normalize('NFC')
  .refine((label) => label !== '' && [...label].length <= 80)
  .refine((label) => !/\p{Cc}/u.test(label) && label.isWellFormed())

/** Replaces an account's list; an empty one stands for the usual reasons. Existing refunds keep their text. */
export async function saveReasons(
  { db: { sql }, log }: Pick<Context, 'db' | 'log'>,
  { merchantCode, actor, operation }: { merchantCode: string; actor: Actor; operation: string },
  reasons: string[],
): Promise<void> {
  await runInTransaction(sql, async (tx) => {
    const a = merchantAccounts
    const saved = await build(tx)
      .update(a)
      .set({ refundReasons: reasons })
      .where(eq(a.merchantCode, merchantCode))
      .returning({ merchantCode: a.merchantCode })
    if (saved.length !== 1) throw new Error(`account ${merchantCode} has no row`)
    await recordWrite(tx, log, actor, { operation, merchantCode, objectId: merchantCode })
  })
}
