import type { payments } from '../db/schema.ts'
import type { ListedPayment, PaymentList } from '../gateway/types.ts'
import { compareAmounts, subtractAmount } from '../money.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import { isKnownStatus } from './view.ts'

/** The query whose answer is applied: when it was sent (database time), and its row in `gateway_calls`. */
export type SnapshotRef = { asOf: string; callId: number }

/** The columns that answers write; the schema explains them. Times are those of queries (database time). */
export const FACTS = [
  ...(['status', 'amount', 'refundedAmount', 'paymentMethod', 'missing', 'unlistedSince'] as const),
  ...(['unreadable', 'countedStatus', 'countedAmount', 'amountChangedAt'] as const),
  ...(['countedRefunded', 'refundedFellAt', 'expectedFall', 'asOf'] as const),
]

export type StoredPayment = Pick<typeof payments.$inferSelect, 'paymentId' | (typeof FACTS)[number]>

const NO_ODD_SUCCESS = { countedStatus: null, countedAmount: null, amountChangedAt: null }
const NOT_FALLEN = { countedRefunded: null, refundedFellAt: null }
export const NOTHING_ODD = { ...NO_ODD_SUCCESS, ...NOT_FALLEN, expectedFall: null }

/** `before` is null if the payment is new. */
export type PaymentChange = {
  paymentId: string
  field: string
  before: string | null
  after: string
}

export type AppliedPayments = ReturnType<typeof comparePayments> & {
  /** The answer has an entry that was not applied. */
  unapplied: boolean
}

/**
 * Computes what the stored payments become, and every difference that a reader can see. A payment that is no longer
 * listed is kept, and marked missing once its absence is believed. One that cannot be read is kept as it was. An
 * amount of equal value keeps its notation.
 * @param asOf when the query was sent (database time)
 * @param apartMs the least time between two answers that confirm an amount
 * @returns `askAgainInMs`: when another answer may confirm an amount, if one waits for that
 */
export function comparePayments(
  stored: readonly StoredPayment[],
  { payments: listed, unreadable }: Pick<PaymentList, 'payments' | 'unreadable'>,
  asOf: string,
  apartMs: number,
) {
  const before = new Map(stored.map((payment) => [payment.paymentId, payment]))
  const after = listed.map(({ id, ...facts }): StoredPayment => {
    const old = before.get(id)
    // The own members come first: members after a spread are added slowly, one by one.
    return {
      paymentId: id,
      asOf,
      ...facts,
      amount: keepNotation(old?.amount, facts.amount),
      refundedAmount: keepNotation(old?.refundedAmount, facts.refundedAmount),
      ...LISTED,
      ...NOTHING_ODD,
      ...(old && judgeSuccess(old, facts, asOf, apartMs)),
      ...(old && judgeFall(old, facts, asOf, apartMs)),
    }
  })
  const ids = new Set(listed.map(({ id }) => id))
  const unreadableIds = new Set(unreadable.map(({ id }) => id))
  const kept = stored
    .filter(({ paymentId }) => !ids.has(paymentId))
    .map((payment): StoredPayment => {
      if (unreadableIds.has(payment.paymentId)) return { ...payment, ...LISTED, unreadable: true }
      // An entry without an id may be that of any payment, unless a person has dismissed it.
      return unreadableIds.has(undefined) ? payment : markUnlisted(payment, asOf)
    })
  const payments = [...after, ...kept]
  const changes = payments.flatMap((payment) => listChanges(before.get(payment.paymentId), payment))
  // The paid and refunded amounts that this answer shows but that do not count yet.
  const waits = after
    .flatMap(({ amountChangedAt, refundedFellAt }) => [amountChangedAt, refundedFellAt])
    .flatMap((since) => (since === null ? [] : [apartMs - measureMs(since, asOf)]))
  return { payments, changes, askAgainInMs: waits.length === 0 ? undefined : Math.min(...waits) }
}

const LISTED = { missing: false, unlistedSince: null, unreadable: false }

/** One answer may omit a payment by mistake. Its absence is believed if another one omits it this much later (ms). */
const BELIEVED_AFTER_MS = 60_000

function markUnlisted(payment: StoredPayment, asOf: string): StoredPayment {
  const unlistedSince = payment.unlistedSince ?? asOf
  const missing = payment.missing || measureMs(unlistedSince, asOf) >= BELIEVED_AFTER_MS
  return { ...payment, missing, unlistedSince, unreadable: false }
}

function keepNotation(old: string | undefined, listed: string): string {
  return old !== undefined && compareAmounts(old, listed) === 0 ? old : listed
}

const SHOWN = [
  'status',
  'amount',
  'refundedAmount',
  'paymentMethod',
  'missing',
  'unreadable',
] as const

/** Each amount, and the column that counts in its place while it is set. */
const COUNTED = [
  ['amount', 'countedAmount'],
  ['refundedAmount', 'countedRefunded'],
] as const

function listChanges(before: StoredPayment | undefined, after: StoredPayment): PaymentChange[] {
  const { paymentId } = after
  if (!before) return [{ paymentId, field: 'status', before: null, after: after.status }]
  const shown = SHOWN.filter((field) => before[field] !== after[field]).map((field) => {
    return { paymentId, field, before: String(before[field]), after: String(after[field]) }
  })
  // Amounts that were shown before and count from now on, because two answers agree.
  const confirmed = COUNTED.flatMap(([field, counted]) => {
    const [old, now] = [before[counted] ?? before[field], after[counted] ?? after[field]]
    const isConfirmed = before[field] === after[field] && compareAmounts(old, now) !== 0
    return isConfirmed ? [{ paymentId, field: counted, before: old, after: now }] : []
  })
  return [...shown, ...confirmed]
}

type Reading<Name extends keyof StoredPayment> = Pick<StoredPayment, Name>

export const getCountedStatus = (one: Reading<'status' | 'countedStatus'>) =>
  one.countedStatus ?? one.status

/** The amount that counts for refunds (decimal string). */
export const getCountedAmount = (one: Reading<'amount' | 'countedAmount'>) =>
  one.countedAmount ?? one.amount

/**
 * Judges a refunded amount that has fallen: a stale replica must not free money. A lower amount counts once two
 * answers, `apartMs` apart, agree. Only a fall by refunds that people have released counts at once: the first such
 * fall, and none after growth, which may hide that the amount has fallen already.
 */
function judgeFall(
  old: StoredPayment,
  { refundedAmount }: Pick<ListedPayment, 'refundedAmount'>,
  asOf: string,
  apartMs: number,
): Reading<'countedRefunded' | 'refundedFellAt' | 'expectedFall'> {
  const counted = old.countedRefunded ?? old.refundedAmount
  const { expectedFall } = old
  const grown = compareAmounts(refundedAmount, counted)
  if (grown >= 0) return { ...NOT_FALLEN, expectedFall: grown > 0 ? null : expectedFall }
  const fallen = subtractAmount(counted, refundedAmount)
  if (expectedFall !== null && compareAmounts(fallen, expectedFall) <= 0) {
    return { ...NOT_FALLEN, expectedFall: null }
  }
  const isSame = compareAmounts(refundedAmount, old.refundedAmount) === 0
  const since = (isSame ? old.refundedFellAt : null) ?? asOf
  if (areApart(since, asOf, apartMs)) return { ...NOT_FALLEN, expectedFall: null }
  return { countedRefunded: counted, refundedFellAt: since, expectedFall }
}

/**
 * Judges the status and amount of a payment that has succeeded. The success counts while the status is
 * undocumented. A changed amount counts for refunds once two answers, `apartMs` apart, show it with a success, even
 * if one in between took the success back.
 */
function judgeSuccess(
  old: StoredPayment,
  { status, amount }: Pick<ListedPayment, 'status' | 'amount'>,
  asOf: string,
  apartMs: number,
): Reading<'countedStatus' | 'countedAmount' | 'amountChangedAt'> {
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
  if (areApart(since, asOf, apartMs)) return NO_ODD_SUCCESS
  return { ...kept, amountChangedAt: since }
}

/** Whether these are two answers, `apartMs` apart. Even if that is 0, a single answer confirms nothing. */
function areApart(since: string, asOf: string, apartMs: number): boolean {
  return since !== asOf && measureMs(since, asOf) >= apartMs
}

function measureMs(from: string, to: string): number {
  return Date.parse(toIso(to)) - Date.parse(toIso(from))
}
