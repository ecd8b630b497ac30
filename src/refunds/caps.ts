import type { CapsByCurrency } from '../access/keys.ts'
import type { Access } from '../access/types.ts'
import { CAPS_LOCK } from '../db/names.ts'
import { DomainError } from '../errors.ts'
import { addAmounts, compareAmounts, subtractAmount } from '../money.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** What an API key and those it was rotated from have refunded on a day, by verified currency. */
export type DayTotals = { day: string; byCurrency: Readonly<Record<string, string>> }

/** Stands in the totals for payments whose currency is not verified. */
const UNVERIFIED = '*'

export function countsToday({ refundDailyMax, refundDailyMaxByCurrency }: Access): boolean {
  return refundDailyMax !== null || refundDailyMaxByCurrency !== null
}

/** Locks the day of an API key and its rotations until the commit, before any row: their refunds count in turn. */
export async function lockDay(
  tx: Tx,
  { chainId }: Pick<Access, 'chainId'>,
  zone: string,
): Promise<void> {
  await tx`
    select pg_advisory_xact_lock(${CAPS_LOCK}, hashtext(current_schema() || ${chainId}::text || (now() at time zone ${zone})::date))`
}

/**
 * Sums the refunds of the day. One that failed without being sent does not count, unless a person decided it: then the
 * gateway had notified it. Call it after `lockDay`, in a statement of its own.
 */
export async function readDay(tx: Tx, { chainId }: Access, zone: string): Promise<DayTotals> {
  const rows = await tx<{ day: string; currency: string | null; amount: string | null }[]>`
    select today.day::text as day, coalesce(r.cap_currency, ${UNVERIFIED}) as currency, sum(r.amount) as amount
    from (select (now() at time zone ${zone})::date as day) as today left join refunds as r
      on r.cap_key_id = ${chainId} and r.cap_day = today.day
        and not coalesce(r.status = 'failed' and r.attempts = 0 and r.failure_source in ('merchant', 'service')
          and r.failure_reason <> 'resolved', false)
    group by 1, 2`
  const day = rows[0]?.day
  if (day === undefined) throw new Error('a day has no row')
  const sums = rows.map(({ currency, amount }) => [currency ?? UNVERIFIED, amount ?? '0'])
  return { day, byCurrency: Object.fromEntries(sums) }
}

/** `currency` is null when it is not verified; then the lowest cap of any currency applies. */
type Asked = { amount: string; currency: string | null; today: DayTotals | undefined; zone: string }

/**
 * Applies the caps on a single refund and on a day in `CAPS_TIME_ZONE`, each in any currency and by currency.
 * @throws DomainError `refund_cap_exceeded`, with what is left today
 */
export function requireWithinCaps(access: Access, { amount, currency, today, zone }: Asked): void {
  const leftToday = today && findLeft(access, today, currency)
  const extra = leftToday === undefined ? {} : { leftToday }
  const inAny = access.refundMax === null ? [] : [access.refundMax]
  const inCurrency = selectCaps(access.refundMaxByCurrency, currency).map(([, cap]) => cap)
  const max = findLowest([...inAny, ...inCurrency])
  const unit = describeUnit(access, currency)
  if (max !== undefined && compareAmounts(amount, max) > 0) {
    const detail = `This key may refund at most ${max} at once${unit}`
    throw new DomainError('refund_cap_exceeded', detail, { extra })
  }
  if (leftToday !== undefined && compareAmounts(amount, leftToday) > 0) {
    const { refundDailyMax } = access
    const of = unit === '' && refundDailyMax !== null ? `, of ${refundDailyMax} a day` : ''
    const detail = `This key may refund ${leftToday} more today (${zone})${of}${unit}`
    throw new DomainError('refund_cap_exceeded', detail, { extra })
  }
}

/** What the API key may still refund today. An amount without a verified currency counts in every currency. */
function findLeft(access: Access, { byCurrency }: DayTotals, currency: string | null): string {
  const { refundDailyMax, refundDailyMaxByCurrency: caps } = access
  const total = addAmounts(['0', ...Object.values(byCurrency)])
  const inAny = refundDailyMax === null ? [] : [subtractAmount(refundDailyMax, total)]
  const inCurrency = selectCaps(caps, currency).map(([code, cap]) => {
    const counted = [byCurrency[code], byCurrency[UNVERIFIED]].filter((one) => one !== undefined)
    return subtractAmount(cap, addAmounts(['0', ...counted]))
  })
  return findLowest([...inAny, ...inCurrency]) ?? '0'
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

/** The caps for a refund in the currency. Where it has none, nothing may be refunded. */
function selectCaps(caps: CapsByCurrency | null, currency: string | null): [string, string][] {
  if (caps === null) return []
  return currency === null ? Object.entries(caps) : [[currency, caps[currency] ?? '0']]
}

function findLowest(amounts: readonly string[]): string | undefined {
  return amounts.toSorted(compareAmounts)[0]
}
