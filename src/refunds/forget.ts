import type { Context } from '../context.ts'

const BATCH = 500

/**
 * Deletes the receivers of refunds that are over and whose end can no longer be revised; what people
 * are shown, with the number masked, stays.
 * @returns how many were forgotten
 */
export async function forgetReceivers(ctx: Context): Promise<number> {
  const forgotten = await ctx.sql`
    update refunds set receiver = null
    where (merchant_code, refund_id) in (
      select merchant_code, refund_id from refunds
      where receiver is not null and forget_receiver_at <= now() limit ${BATCH} for update skip locked)`
  return forgotten.count
}
