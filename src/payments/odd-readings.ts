import type { ListedPayment } from '../gateway/types.ts'
import { compareAmounts } from '../money.ts'
import { toIso } from '../platform/postgres/iso-time.ts'
import { isKnownStatus } from './is-recognised.ts'
import type { StoredPayment } from './types.ts'

/** What counts of a payment where that is not what the newest answer shows. */
export type OddReading = Pick<StoredPayment, 'countedStatus' | 'countedAmount' | 'amountChangedAt'>

export const NOTHING_ODD: OddReading = {
  countedStatus: null,
  countedAmount: null,
  amountChangedAt: null,
}

/** The status that counts for the state and the sums of the transaction. */
export function getCountedStatus({
  status,
  countedStatus,
}: Pick<StoredPayment, 'status' | 'countedStatus'>): string {
  return countedStatus ?? status
}

/** The amount that counts for refunds (decimal string). */
export function getCountedAmount({
  amount,
  countedAmount,
}: Pick<StoredPayment, 'amount' | 'countedAmount'>): string {
  return countedAmount ?? amount
}

/**
 * Judges what an answer shows of a known payment: odd readings change nothing. A success keeps counting while its status
 * is one that nobody knows. Another amount than the one it succeeded with counts for refunds once two answers, apart,
 * show it with a success; that also holds when an answer in between took the success back.
 * @param asOf when the query was sent (database time)
 * @param apartMs how far apart the two answers are, at least
 */
export function judgeReading(
  old: StoredPayment,
  { status, amount }: Pick<ListedPayment, 'status' | 'amount'>,
  asOf: string,
  apartMs: number,
): OddReading {
  const wasSuccess = getCountedStatus(old) === 'SUCCESS'
  const countedStatus = wasSuccess && !isKnownStatus(status) ? 'SUCCESS' : null
  const counted = wasSuccess ? getCountedAmount(old) : old.countedAmount
  if (counted === null) return NOTHING_ODD
  const kept = { countedStatus, countedAmount: counted, amountChangedAt: null }
  const isCounted = compareAmounts(amount, counted) === 0
  if (isCounted && (countedStatus ?? status) === 'SUCCESS') return { ...NOTHING_ODD, countedStatus }
  if (isCounted || status !== 'SUCCESS') return kept
  const isSame = compareAmounts(amount, old.amount) === 0
  const since = (isSame ? old.amountChangedAt : null) ?? asOf
  if (measureMs(since, asOf) >= apartMs) return NOTHING_ODD
  return { ...kept, amountChangedAt: since }
}

/**
 * How long until an answer may confirm an amount that the newest one, sent at `asOf`, shows and that does not count yet
 * (ms); undefined when no payment waits for that.
 */
export function measureAmountWait(
  payments: readonly StoredPayment[],
  asOf: string,
  apartMs: number,
): number | undefined {
  const waits = payments.flatMap((one) =>
    one.amountChangedAt === null || one.asOf !== asOf
      ? []
      : [apartMs - measureMs(one.amountChangedAt, asOf)],
  )
  return waits.length === 0 ? undefined : Math.min(...waits)
}

/** Between two database times. */
export function measureMs(from: string, to: string): number {
  return Date.parse(toIso(to)) - Date.parse(toIso(from))
}
