import type { ListedPayment } from '../gateway/types.ts'
import { compareAmounts, subtractAmount } from '../money.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { isKnownStatus } from './view.ts'

/** The query whose answer is applied: when it was sent (database time) and its row in `gateway_calls`. */
export type SnapshotRef = { asOf: string; callId: number }

export type StoredPayment = Omit<ListedPayment, 'id'> & {
  paymentId: string
  /** Two answers at least a minute apart omitted it. */
  missing: boolean
  /** Since when it is not listed (database time of a query, like every time here); null while it is. */
  unlistedSince: string | null
  /** Listed, but with values that cannot be read. */
  unreadable: boolean
  /** SUCCESS while a succeeded payment has a status that nobody knows; otherwise null. */
  countedStatus: string | null
  /** The amount that counts for refunds while that is not `amount`, or its success is withdrawn; otherwise null. */
  countedAmount: string | null
  /** Since when `amount` is shown, while it waits for another answer. */
  amountChangedAt: string | null
  /** The refunded amount that counts while the newest answers show less; otherwise null. */
  countedRefunded: string | null
  /** Since when this much less refunded is shown. */
  refundedFellAt: string | null
  /** By how much the refunded amount may fall at once, because people released refunds in it; or null. */
  expectedFall: string | null
  /** The answer it was last read from. */
  asOf: string
}

/** `before` is null when the payment is new. */
export type PaymentChange = {
  paymentId: string
  field: string
  before: string | null
  after: string
}

/** An answer lists a payment that is stored under another transaction; `movePayments` has not run, or lost a race. */
export class PaymentElsewhereError extends Error {}

/** What an answer makes of a transaction's payments, and every difference visible to a reader. */
export type AppliedPayments = {
  payments: StoredPayment[]
  changes: PaymentChange[]
  changed: boolean
  /** The answer has an entry that was not applied. */
  unapplied: boolean
  /** When an answer may confirm the amount of a payment (ms); undefined when none waits for that. */
  askAgainInMs: number | undefined
}

type OddReading = Pick<StoredPayment, 'countedStatus' | 'countedAmount' | 'amountChangedAt'>

const NO_ODD_SUCCESS = { countedStatus: null, countedAmount: null, amountChangedAt: null }

type FallenReading = Pick<StoredPayment, 'countedRefunded' | 'refundedFellAt' | 'expectedFall'>

const NOT_FALLEN = { countedRefunded: null, refundedFellAt: null }

export const NOTHING_ODD: OddReading & FallenReading = {
  ...NO_ODD_SUCCESS,
  ...NOT_FALLEN,
  expectedFall: null,
}

/** The status that counts for the state and the sums of the transaction. */
export function getCountedStatus(one: Pick<StoredPayment, 'status' | 'countedStatus'>): string {
  return one.countedStatus ?? one.status
}

/** The amount that counts for refunds (decimal string). */
export function getCountedAmount(one: Pick<StoredPayment, 'amount' | 'countedAmount'>): string {
  return one.countedAmount ?? one.amount
}

/** The refunded amount that counts for what is left (decimal string). */
export function getCountedRefunded(
  one: Pick<StoredPayment, 'refundedAmount' | 'countedRefunded'>,
): string {
  return one.countedRefunded ?? one.refundedAmount
}

/**
 * The refunded amount of a known payment: one from a stale replica frees nothing. Less than before counts once
 * two answers, `apartMs` apart, agree. Only a fall by refunds that people have released counts at once.
 */
export function judgeFall(
  old: StoredPayment,
  { refundedAmount }: Pick<ListedPayment, 'refundedAmount'>,
  asOf: string,
  apartMs: number,
): FallenReading {
  const counted = getCountedRefunded(old)
  const { expectedFall } = old
  if (compareAmounts(refundedAmount, counted) >= 0) return { ...NOT_FALLEN, expectedFall }
  const fallen = subtractAmount(counted, refundedAmount)
  if (expectedFall !== null && compareAmounts(fallen, expectedFall) <= 0) {
    return { ...NOT_FALLEN, expectedFall: subtractAmount(expectedFall, fallen) }
  }
  const isSame = compareAmounts(refundedAmount, old.refundedAmount) === 0
  const since = (isSame ? old.refundedFellAt : null) ?? asOf
  if (measureMs(since, asOf) >= apartMs) return { ...NOT_FALLEN, expectedFall: null }
  return { countedRefunded: counted, refundedFellAt: since, expectedFall }
}

/**
 * Odd readings change nothing. A success keeps counting while its status is one that nobody knows. Another amount
 * than the one it succeeded with counts for refunds once two answers, `apartMs` apart, show it with a success,
 * also when one in between took the success back.
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
  if (counted === null) return NO_ODD_SUCCESS
  const kept = { countedStatus, countedAmount: counted, amountChangedAt: null }
  const isCounted = compareAmounts(amount, counted) === 0
  if (isCounted && (countedStatus ?? status) === 'SUCCESS')
    return { ...NO_ODD_SUCCESS, countedStatus }
  if (isCounted || status !== 'SUCCESS') return kept
  const isSame = compareAmounts(amount, old.amount) === 0
  const since = (isSame ? old.amountChangedAt : null) ?? asOf
  if (measureMs(since, asOf) >= apartMs) return NO_ODD_SUCCESS
  return { ...kept, amountChangedAt: since }
}

/** Until an answer may confirm an amount, paid or refunded, that is shown and does not count yet (ms). */
export function measureAmountWait(
  payments: readonly StoredPayment[],
  asOf: string,
  apartMs: number,
): number | undefined {
  const waits = payments
    .filter((one) => one.asOf === asOf)
    .flatMap(({ amountChangedAt, refundedFellAt }) => [amountChangedAt, refundedFellAt])
    .flatMap((since) => (since === null ? [] : [apartMs - measureMs(since, asOf)]))
  return waits.length === 0 ? undefined : Math.min(...waits)
}

/** Between two database times. */
export function measureMs(from: string, to: string): number {
  return Date.parse(toIso(to)) - Date.parse(toIso(from))
}
