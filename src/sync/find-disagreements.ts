import { Big } from 'big.js'
import type { TransactionKey } from '../db/transaction-key.ts'
import {
  type NewDiscrepancy,
  type ResolvedDiscrepancy,
  shortenSide,
} from '../discrepancies/kinds.ts'
import { isOpenCode } from '../gateway/response-codes.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import { compareAmounts } from '../money.ts'
import {
  type AppliedPayments,
  getCountedAmount,
  getCountedStatus,
  type PaymentChange,
  type StoredPayment,
} from '../payments/odd-readings.ts'
import type { PaymentElsewhere } from '../transactions/move-payments.ts'
import {
  hasOpen,
  listPaid,
  type PaymentFacts,
  summarisePayments,
} from '../transactions/summarise-payments.ts'
import {
  findOrderConflicts,
  findOtherCurrencies,
  type NotifiedPayment,
} from './find-order-conflicts.ts'
import { listAnswered } from './list-answered.ts'
import type { SetAside } from './set-aside.ts'
import type { ClaimedRow } from './types.ts'

/**
 * Compares what was paid with the order's amount, once no payment is open. Too much that was refunded since, or all of
 * it, is no disagreement any more.
 * @param expected the order's amount as a verified notification states it (decimal string); null for none
 * @param known the payments before this answer
 */
export function findAmountMismatch(
  key: TransactionKey,
  expected: string | null,
  { known, payments }: { known: readonly PaymentFacts[]; payments: readonly PaymentFacts[] },
): { found: NewDiscrepancy[]; resolved: ResolvedDiscrepancy[] } {
  if (expected === null) return { found: [], resolved: [] }
  const kind = 'amount_mismatch' as const
  const before = describeMismatch(expected, known)
  const now = describeMismatch(expected, payments)
  const found = now === undefined ? [] : [{ ...key, kind, ours: `amount ${expected}`, theirs: now }]
  return { found, resolved: before === undefined || before === now ? [] : [{ ...key, kind }] }
}

/** @returns what was paid instead of the order's amount; undefined if that agrees, or is not known yet */
function describeMismatch(expected: string, payments: readonly PaymentFacts[]): string | undefined {
  const paid = listPaid(payments).length
  if (paid === 0 || hasOpen(payments)) return undefined
  const { paidAmount, refundedAmount } = summarisePayments(payments)
  if (compareAmounts(paidAmount, expected) === 0) return undefined
  const kept = new Big(paidAmount).minus(refundedAmount)
  if (kept.eq(expected) || kept.lte(0)) return undefined
  return paid === 1 ? `paid ${paidAmount}` : `paid ${paidAmount} in ${paid} payments`
}

/** An applied answer, with what was notified and stored before. */
type AnswerToJudge = {
  claim: TransactionKey
  call: GatewayCall<PaymentList>
  elsewhere: readonly PaymentElsewhere[]
  row: Pick<
    ClaimedRow,
    | 'duplicatePayment'
    | 'unappliedEntries'
    | 'ipnCount'
    | 'orderId'
    | 'merchantTxnId'
    | 'currency'
    | 'expectedAmount'
  >
  notified: readonly NotifiedPayment[]
  /** The payments as they were stored before. */
  known: readonly StoredPayment[]
  setAside: SetAside
  applied: AppliedPayments
}

type Disagreements = { found: NewDiscrepancy[]; resolved: ResolvedDiscrepancy[] }

/**
 * Finds what in an answer disagrees with an earlier answer, with a notification, or with what is expected of a
 * transaction, and which earlier disagreements it resolves.
 */
export function findDisagreements(answer: AnswerToJudge): Disagreements {
  const { claim, row, notified, known, setAside, applied } = answer
  const { merchantCode, transactionId } = claim
  const key = { merchantCode, transactionId }
  const { payments, changes } = applied
  const judged = changes.map((change) => judgeChange(key, change, known, payments))
  const found = [
    ...judged.flatMap((one) => one.found),
    ...findOddEntries(key, answer),
    ...findOrderConflicts(key, answer),
    ...findOtherCurrencies(key, answer),
  ]
  const resolved = judged.flatMap((one) => one.resolved)
  const mismatch = findAmountMismatch(key, applied.unapplied ? null : row.expectedAmount, {
    known,
    payments,
  })
  found.push(...mismatch.found)
  resolved.push(...mismatch.resolved)
  // What is found again is recorded after this.
  const hadUnreadable = setAside.size > 0 || known.some(({ unreadable }) => unreadable)
  if (row.unappliedEntries || hadUnreadable) resolved.push({ ...key, kind: 'payment_unreadable' })
  if (row.ipnCount > 0 && known.length > 0) resolved.push({ ...key, kind: 'ipn_missing' })
  const { final, paidAmount } = summarisePayments(payments)
  const expected = row.expectedAmount
  const wasSurplus = row.duplicatePayment && isSurplusLeft(known, expected)
  const isSurplus = isSurplusLeft(payments, expected)
  if (isSurplus && !wasSurplus) {
    const paid = listPaid(payments).length
    const theirs = `${paid} payments succeeded, together ${paidAmount}`
    const ours = expected === null ? 'one payment is expected' : `amount ${expected} is expected`
    found.push({ ...key, kind: 'duplicate_payment', ours, theirs })
  }
  // Also because the amount of the order has become known since.
  if (!isSurplus && row.duplicatePayment) {
    resolved.push({ ...key, kind: 'duplicate_payment' })
  }
  if (!final || applied.unapplied) return { found, resolved }
  const kind = 'ipn_contradicts_query'
  if (revisesPayments(applied)) resolved.push({ ...key, kind })
  for (const notification of notified.filter((one) => contradicts(one, payments))) {
    const { code, amount } = notification
    const ours = amount === null ? `code ${code}` : `code ${code}, amount ${amount}`
    found.push({ ...key, kind, ours, theirs: describePayments(payments) })
  }
  return { found, resolved }
}

/**
 * Whether more than one payment succeeded, and more is left of them than the amount of the order, which a deposit and the
 * rest are together; or than the largest one, if no verified notification states that amount.
 */
function isSurplusLeft(payments: readonly PaymentFacts[], expected: string | null): boolean {
  const { duplicatePayment, paidAmount, refundedAmount } = summarisePayments(payments)
  if (!duplicatePayment) return false
  const kept = new Big(paidAmount).minus(refundedAmount)
  if (expected !== null) return kept.gt(expected)
  return listPaid(payments).every(({ amount }) => kept.gt(amount))
}

/** The entries that were not applied, and the amounts that were read as the decimal next to them. */
function findOddEntries(key: TransactionKey, { call, elsewhere }: AnswerToJudge): NewDiscrepancy[] {
  const { unreadable, rounded } = listAnswered(call)
  return [
    ...unreadable.map(({ id, reason, text }): NewDiscrepancy => {
      const ours = `not applied, because the entry ${reason}`
      const kind = 'payment_unreadable'
      return { ...key, kind, paymentId: id, ours, theirs: shortenSide(text) }
    }),
    ...rounded.map(({ id, field, written, amount }): NewDiscrepancy => {
      const sides = { ours: `${field} ${amount}`, theirs: `${field} ${written}` }
      return { ...key, kind: 'amount_rounded', paymentId: id, ...sides }
    }),
    ...elsewhere.map(({ paymentId, transactionId }): NewDiscrepancy => {
      const ours = `listed under transaction ${transactionId}`
      const theirs = `listed under transaction ${key.transactionId}`
      return { ...key, kind: 'payment_elsewhere', paymentId, ours, theirs }
    }),
  ]
}

function judgeChange(
  key: TransactionKey,
  { paymentId, field, before, after }: PaymentChange,
  known: readonly StoredPayment[],
  payments: readonly StoredPayment[],
): Disagreements {
  const old = known.find((one) => one.paymentId === paymentId)
  // That an amount counts from now on is no news: its change is a discrepancy since it was first shown.
  const isConfirmed = field === 'countedAmount' || field === 'countedRefunded'
  if (!old || before === null || isConfirmed) return { found: [], resolved: [] }
  const subject = { ...key, paymentId }
  // Its entry is a discrepancy of its own.
  if (field === 'unreadable') return { found: [], resolved: [] }
  if (field === 'missing') {
    const kind = 'payment_missing'
    if (after !== 'true') return { found: [], resolved: [{ ...subject, kind }] }
    const payment = payments.find((one) => one.paymentId === paymentId)
    const ours = `status ${payment?.status}, amount ${payment?.amount}`
    return { found: [{ ...subject, kind, ours, theirs: 'not listed' }], resolved: [] }
  }
  const kind = 'answer_went_backwards'
  // What was odd in between is over with this answer, whatever it says.
  const counted = readCounted(old, field) ?? before
  const resolved = [after, counted].map((value) => {
    return { ...subject, kind, ours: `${field} ${value}` } as const
  })
  if (!wentBackwards(field, counted, after)) return { found: [], resolved }
  const sides = { ours: `${field} ${counted}`, theirs: `${field} ${after}` }
  return { found: [{ ...subject, kind, ...sides }], resolved }
}

/** What counted of a payment before; undefined for what always counts as it is shown. */
function readCounted(old: StoredPayment, field: string): string | undefined {
  if (field === 'status') return getCountedStatus(old)
  return field === 'amount' ? getCountedAmount(old) : undefined
}

/** Whether the answer changes a transaction of which payments were known before. */
function revisesPayments({ payments, changes }: AnswerToJudge['applied']): boolean {
  const added = changes.filter(({ before }) => before === null).length
  return changes.length > 0 && added < payments.length
}

/** Whether the change takes back an earlier answer: a success, an amount, or refunded money. */
function wentBackwards(field: string, before: string, after: string): boolean {
  if (field === 'status') return before === 'SUCCESS' && after !== 'SUCCESS'
  if (field === 'amount') return compareAmounts(before, after) !== 0
  return field === 'refundedAmount' && compareAmounts(after, before) < 0
}

/**
 * Whether a notification cannot be true of final payments. A success is contradicted when no payment succeeded; a
 * failure when all succeeded, because one of several attempts may have failed. Its amount is the order's: what was paid
 * of it is judged by `findAmountMismatch`.
 */
export function contradicts(
  { code, isOther }: Pick<NotifiedPayment, 'code' | 'isOther'>,
  payments: readonly Pick<PaymentFacts, 'status'>[],
): boolean {
  if (code === null || isOther || isOpenCode(code)) return false
  const paid = payments.filter(({ status }) => status === 'SUCCESS')
  return code === '0' ? paid.length === 0 : paid.length === payments.length
}

const MAX_DESCRIBED = 3

function describePayments(payments: readonly PaymentFacts[]): string {
  const rest = payments.length - MAX_DESCRIBED
  const described = payments
    .slice(0, MAX_DESCRIBED)
    .map(({ status, amount }) => `${status} ${amount}`)
  return [...described, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ')
}
