import { and, eq, sql } from 'drizzle-orm'
import type { Access } from '../../access/types.ts'
import type { Config } from '../../config/config.ts'
import { apiKeyDays } from '../../db/schema.ts'
import { DomainError } from '../../errors.ts'
import { addAmounts, compareAmounts, subtractAmount } from '../../money.ts'
import { build } from '../../platform/postgres/query-builder.ts'
import type { Tx } from '../../platform/postgres/types.ts'

type Caps = {
  /**
   * Adds a refund's amount (decimal string) to the day's total.
   * @throws DomainError `refund_cap_exceeded`, with what is left today
   */
  consume(amount: string): Promise<void>
}

/**
 * Locks the caps of a key: the largest single refund and the total of a day in the zone
 * `CAPS_TIME_ZONE`. Take the lock of the key's day
 * row before all others; it makes concurrent refunds of one key count one after the other. A rotated key and its
 * successor share the row, so rotation does not reset the total.
 */
export async function lockCaps(
  tx: Tx,
  { chainId, refundMax: max, refundDailyMax: dailyMax }: Access,
  { CAPS_TIME_ZONE: zone }: Pick<Config, 'CAPS_TIME_ZONE'>,
): Promise<Caps> {
  if (dailyMax !== null) {
    await build(tx)
      .insert(apiKeyDays)
      .values({ keyId: chainId, day: sql`(now() at time zone ${zone})::date` })
      .onConflictDoNothing()
  }
  const [day] =
    dailyMax === null
      ? []
      : await tx<{ refunded: string; day: string }[]>`
          select refunded, day::text from api_key_days
          where key_id = ${chainId} and day = (now() at time zone ${zone})::date for update`
  return {
    async consume(amount) {
      const left = dailyMax === null ? null : subtractAmount(dailyMax, day?.refunded ?? '0')
      const extra = left === null ? {} : { leftToday: left }
      if (max !== null && compareAmounts(amount, max) > 0) {
        throw new DomainError('refund_cap_exceeded', `This key may refund at most ${max} at once`, {
          extra,
        })
      }
      if (left !== null && compareAmounts(amount, left) > 0) {
        const detail = `This key may refund ${left} more today (${zone}), of ${dailyMax} a day`
        throw new DomainError('refund_cap_exceeded', detail, { extra })
      }
      if (!day) return
      await build(tx)
        .update(apiKeyDays)
        .set({ refunded: addAmounts([day.refunded, amount]) })
        .where(and(eq(apiKeyDays.keyId, chainId), eq(apiKeyDays.day, day.day)))
    },
  }
}
