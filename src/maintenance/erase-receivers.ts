import type { Context } from '../context.ts'

const BATCH = 500

/**
 * Erases the receivers of refunds that have ended and whose outcome can no longer be revised. The masked
 * receiver, which people are shown, stays.
 * @returns the number of receivers erased
 */
export async function eraseReceivers({ sql }: Pick<Context, 'sql'>): Promise<number> {
  const erased = await sql`
    update refunds set receiver = null
    where (merchant_code, refund_id) in (
      select merchant_code, refund_id from refunds
      where receiver is not null and forget_receiver_at <= now() limit ${BATCH} for update skip locked)`
  return erased.count
}
