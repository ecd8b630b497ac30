import type { Access } from '../access/authenticate.ts'
import type { Tx } from '../db/client.ts'
import { DomainError } from '../errors.ts'
import { addAmounts, compareAmounts, subtractAmount } from '../money.ts'

type Caps = { charge(amount: string): Promise<void> }

/**
 * The caps of a key: the largest single refund and the total of a UTC day. Locks the key's day row, the
 * first lock of all, so that concurrent refunds of one key are counted one after the other. A rotated key
 * and its successor share that row: rotation gives no second day.
 * @returns `charge`, which throws DomainError `refund_cap_exceeded` with what is left today
 */
export async function chargeCaps(
  tx: Tx,
  { chainId, refundMax: max, refundDailyMax: dailyMax }: Access,
): Promise<Caps> {
  if (dailyMax !== null) {
    await tx`
      insert into api_key_days (key_id, day) values (${chainId}, (now() at time zone 'UTC')::date)
      on conflict do nothing`
  }
  const [day] =
    dailyMax === null
      ? []
      : await tx<{ refunded: string; day: string }[]>`
          select refunded, day::text from api_key_days
          where key_id = ${chainId} and day = (now() at time zone 'UTC')::date for update`
  return {
    async charge(amount) {
      const left = dailyMax === null ? null : subtractAmount(dailyMax, day?.refunded ?? '0')
      const extra = left === null ? {} : { leftToday: left }
      if (max !== null && compareAmounts(amount, max) > 0) {
        throw new DomainError('refund_cap_exceeded', `This key may refund at most ${max} at once`, {
          extra,
        })
      }
      if (left !== null && compareAmounts(amount, left) > 0) {
        const detail = `This key may refund ${left} more today (UTC), of ${dailyMax} a day`
        throw new DomainError('refund_cap_exceeded', detail, { extra })
      }
      if (!day) return
      await tx`
        update api_key_days set refunded = ${addAmounts([day.refunded, amount])}
        where key_id = ${chainId} and day = ${day.day}`
    },
  }
}
