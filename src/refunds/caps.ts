import { and, eq, sql } from 'drizzle-orm'
import type { CapsByCurrency } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import type { Config } from '../config/config.ts'
import { apiKeyDays } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { addAmounts, compareAmounts, subtractAmount } from '../money.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** A day of a key, whose totals refunds are added to. */
export type CountedDay = { keyId: string; day: string }

export type Caps = {
  /** Null when no total is counted. */
  counted: CountedDay | null
  /** Whether what may be refunded depends on the currency. */
  byCurrency: boolean
  /**
   * Adds a refund's amount (decimal string) to the day's totals.
   * @param currency of the payment, as verified; null when it is not known: then the lowest cap of any currency
   *   applies, and the amount counts in every currency
   * @throws DomainError `refund_cap_exceeded`, with what is left today
   */
  consume(amount: string, currency: string | null): Promise<void>
}

/** Totals of a day, by currency as decimal strings. */
type Totals = { refunded: string; byCurrency: Record<string, string> }
type Day = CountedDay & { added: Totals; unsent: Totals }

/** Stands in the totals for payments without a verified currency. */
const UNVERIFIED = '*'

/**
 * Locks the caps of a key: the largest single refund and the total of a day in the zone `CAPS_TIME_ZONE`, each in any
 * currency and by currency. Take the lock of the key's day row before all others; it makes concurrent refunds of one
 * key count one after the other. A rotated key and its successor share the row, so rotation does not reset the total.
 */
export async function lockCaps(
  tx: Tx,
  access: Access,
  { CAPS_TIME_ZONE: zone }: Pick<Config, 'CAPS_TIME_ZONE'>,
): Promise<Caps> {
  const { refundDailyMax, refundDailyMaxByCurrency, refundMaxByCurrency } = access
  const isCounted = refundDailyMax !== null || refundDailyMaxByCurrency !== null
  const day = isCounted ? await lockDay(tx, access.chainId, zone) : null
  return {
    counted: day && { keyId: day.keyId, day: day.day },
    byCurrency: refundMaxByCurrency !== null || refundDailyMaxByCurrency !== null,
    async consume(amount, currency) {
      const leftToday = day && findLeft(access, day, currency)
      refuseAbove(access, { amount, currency, leftToday, zone })
      if (day) await addToDay(tx, day, amount, currency ?? UNVERIFIED)
    },
  }
}

async function lockDay(tx: Tx, keyId: string, zone: string): Promise<Day> {
  await build(tx)
    .insert(apiKeyDays)
    .values({ keyId, day: sql`(now() at time zone ${zone})::date` })
    .onConflictDoNothing()
  const [row] = await tx<(Totals & { day: string })[]>`
    select refunded, day::text, refunded_by_currency as "byCurrency" from api_key_days
    where key_id = ${keyId} and day = (now() at time zone ${zone})::date for update`
  if (!row) throw new Error('the day of a key was not stored')
  const { day, ...added } = row
  return { keyId, day, added, unsent: await sumUnsent(tx, { keyId, day }) }
}

/**
 * Sums the day's refunds that have failed without being sent: nothing was refunded, and nothing will be. One that a
 * person decided stays counted, because the gateway had notified it. A statement after the lock: it sees what
 * committed during the wait.
 */
async function sumUnsent(tx: Tx, { keyId, day }: CountedDay): Promise<Totals> {
  const rows = await tx<{ currency: string; amount: string }[]>`
    select coalesce(r.cap_currency, ${UNVERIFIED}) as currency, sum(r.amount)::text as amount
    from (select ${keyId}::uuid as cap_key_id, ${day}::date as cap_day) as k cross join lateral (
      select * from refunds as r
      where r.status = 'failed' and r.attempts = 0 and r.failure_source in ('merchant', 'service')
        and r.failure_reason <> 'resolved' and ${tx.unsafe(byKey('r', ['cap_key_id', 'cap_day'], 'k'))} offset 0
    ) as r group by 1`
  const refunded = addAmounts(['0', ...rows.map(({ amount }) => amount)])
  return { refunded, byCurrency: Object.fromEntries(rows.map((row) => [row.currency, row.amount])) }
}

/** What the key may refund in the rest of the day (decimal string). */
function findLeft(access: Access, { added, unsent }: Day, currency: string | null): string {
  const { refundDailyMax, refundDailyMaxByCurrency: caps } = access
  const total = subtractAmount(added.refunded, unsent.refunded)
  const inAny = refundDailyMax === null ? [] : [subtractAmount(refundDailyMax, total)]
  const inCurrency = selectCaps(caps, currency).map(([code, cap]) => {
    const count = (totals: Totals) => [totals.byCurrency[code], totals.byCurrency[UNVERIFIED]]
    const sum = (totals: Totals) => addAmounts(['0', ...count(totals).filter((one) => one != null)])
    return subtractAmount(cap, subtractAmount(sum(added), sum(unsent)))
  })
  return findLowest([...inAny, ...inCurrency]) ?? '0'
}

type Asked = { amount: string; currency: string | null; leftToday: string | null; zone: string }

/** @throws DomainError `refund_cap_exceeded` */
function refuseAbove(access: Access, { amount, currency, leftToday, zone }: Asked): void {
  const extra = leftToday === null ? {} : { leftToday }
  const inAny = access.refundMax === null ? [] : [access.refundMax]
  const inCurrency = selectCaps(access.refundMaxByCurrency, currency).map(([, cap]) => cap)
  const max = findLowest([...inAny, ...inCurrency])
  const unit = describeUnit(access, currency)
  if (max !== undefined && compareAmounts(amount, max) > 0) {
    const detail = `This key may refund at most ${max} at once${unit}`
    throw new DomainError('refund_cap_exceeded', detail, { extra })
  }
  if (leftToday !== null && compareAmounts(amount, leftToday) > 0) {
    const { refundDailyMax } = access
    const of = unit === '' && refundDailyMax !== null ? `, of ${refundDailyMax} a day` : ''
    const detail = `This key may refund ${leftToday} more today (${zone})${of}${unit}`
    throw new DomainError('refund_cap_exceeded', detail, { extra })
  }
}

function describeUnit(
  { refundMaxByCurrency, refundDailyMaxByCurrency }: Access,
  currency: string | null,
): string {
  if (refundMaxByCurrency === null && refundDailyMaxByCurrency === null) return ''
  return currency === null
    ? ': the currency of the payment is not verified, so the lowest cap of any currency applies'
    : ` in ${currency}`
}

/** The caps that a refund in the currency has to respect; in a currency without one, nothing may be refunded. */
function selectCaps(caps: CapsByCurrency | null, currency: string | null): [string, string][] {
  if (caps === null) return []
  return currency === null ? Object.entries(caps) : [[currency, caps[currency] ?? '0']]
}

function findLowest(amounts: readonly string[]): string | undefined {
  return amounts.toSorted(compareAmounts)[0]
}

async function addToDay(tx: Tx, { keyId, day, added }: Day, amount: string, currency: string) {
  const inCurrency = addAmounts([added.byCurrency[currency] ?? '0', amount])
  await build(tx)
    .update(apiKeyDays)
    .set({
      refunded: addAmounts([added.refunded, amount]),
      refundedByCurrency: { ...added.byCurrency, [currency]: inCurrency },
    })
    .where(and(eq(apiKeyDays.keyId, keyId), eq(apiKeyDays.day, day)))
}
