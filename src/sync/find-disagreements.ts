import { Big } from 'big.js'
import type {
  DiscrepancyKind,
  NewDiscrepancy,
  RecordedDiscrepancy,
} from '../discrepancies/kinds.ts'
import { type ResolvedDiscrepancy, shortenSide } from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import { isOpenCode } from '../gateway/response-codes.ts'
import { compareAmounts } from '../money.ts'
import type { AppliedPayments, PaymentChange, StoredPayment } from '../payments/compare-payments.ts'
import { getCountedAmount, getCountedStatus } from '../payments/compare-payments.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { PaymentFacts } from '../transactions/summarise-payments.ts'
import { hasOpen, listPaid, summarisePayments } from '../transactions/summarise-payments.ts'
import type { AppliedAnswer } from './apply-answers.ts'
import type { NotifiedPayment, Sides } from './name-transaction.ts'
import { listOrderConflicts, listOtherCurrencies } from './name-transaction.ts'
import { listAnswered } from './types.ts'

type AnswerToJudge = AppliedAnswer & { applied: AppliedPayments }

type Findings = {
  add(kind: DiscrepancyKind, sides: Sides & { paymentId?: string | undefined }): void
  /** The sides agree again; `subject` narrows this to one payment, or to one of our values. */
  end(kind: DiscrepancyKind, subject?: { paymentId?: string; ours?: string }): void
}

/**
 * Records where applied answers disagree with earlier answers, notifications, or what is expected, and resolves what
 * agrees again. Runs no statement if there is nothing to record.
 * @returns the discrepancies recorded for the first time
 */
export async function recordDisagreements(
  tx: Tx,
  answers: readonly AppliedAnswer[],
): Promise<RecordedDiscrepancy[]> {
  const found: NewDiscrepancy[] = []
  const resolved: ResolvedDiscrepancy[] = []
  for (const { applied, ...answer } of answers) {
    const { merchantCode, transactionId } = answer.claim
    const key = { merchantCode, transactionId }
    const findings: Findings = {
      add: (kind, sides) => found.push({ ...key, kind, ...sides }),
      end: (kind, subject) => resolved.push({ ...key, kind, ...subject }),
    }
    if (applied) findDisagreements(findings, { ...answer, applied })
  }
  // Resolved first, because a discrepancy that is found again must end up open.
  const [, recorded] = await pipeline(
    resolveDiscrepancies(tx, resolved),
    recordDiscrepancies(tx, found),
  )
  return recorded
}

function findDisagreements(findings: Findings, answer: AnswerToJudge): void {
  const { row, notified, known, hasDismissed, applied } = answer
  const { payments, changes } = applied
  for (const change of changes) judgeChange(findings, change, known, payments)
  findOddEntries(findings, answer)
  for (const sides of listOrderConflicts(row, notified)) findings.add('order_conflict', sides)
  for (const sides of listOtherCurrencies(row, notified)) findings.add('currency_changed', sides)
  if (!applied.unapplied) judgeAmount(findings, answer)
  const hadUnreadable = hasDismissed || known.some(({ unreadable }) => unreadable)
  if (row.unappliedEntries || hadUnreadable) findings.end('payment_unreadable')
  if (row.ipnCount > 0 && known.length > 0) findings.end('ipn_missing')
  judgeSurplus(findings, answer)
  if (!summarisePayments(payments).final || applied.unapplied) return
  const added = changes.filter(({ before }) => before === null).length
  const isRevised = changes.length > 0 && added < payments.length
  if (isRevised) findings.end('ipn_contradicts_query')
  for (const notification of notified.filter((one) => contradicts(one, payments))) {
    const { code, amount } = notification
    const ours = amount === null ? `code ${code}` : `code ${code}, amount ${amount}`
    findings.add('ipn_contradicts_query', { ours, theirs: describePayments(payments) })
  }
}

function judgeAmount(
  findings: Findings,
  { row: { expectedAmount: expected }, known, applied }: AnswerToJudge,
): void {
  if (expected === null) return
  const before = describeMismatch(expected, known)
  const now = describeMismatch(expected, applied.payments)
  if (before !== undefined && before !== now) findings.end('amount_mismatch')
  if (now !== undefined)
    findings.add('amount_mismatch', { ours: `amount ${expected}`, theirs: now })
}

/** What was paid instead of the order's amount; undefined if that agrees, is open, or refunds have evened it out. */
function describeMismatch(expected: string, payments: readonly PaymentFacts[]): string | undefined {
  const paid = listPaid(payments).length
  if (paid === 0 || hasOpen(payments)) return undefined
  const { paidAmount, refundedAmount } = summarisePayments(payments)
  if (compareAmounts(paidAmount, expected) === 0) return undefined
  const kept = new Big(paidAmount).minus(refundedAmount)
  if (kept.eq(expected) || kept.lte(0)) return undefined
  return paid === 1 ? `paid ${paidAmount}` : `paid ${paidAmount} in ${paid} payments`
}

function judgeSurplus(
  findings: Findings,
  { row, known, applied: { payments } }: AnswerToJudge,
): void {
  const { expectedAmount: expected, duplicatePayment } = row
  // A surplus also ends when the amount of the order becomes known.
  if (!isSurplusLeft(payments, expected)) {
    if (duplicatePayment) findings.end('duplicate_payment')
    return
  }
  if (duplicatePayment && isSurplusLeft(known, expected)) return
  const paid = listPaid(payments).length
  const theirs = `${paid} payments succeeded, together ${summarisePayments(payments).paidAmount}`
  const ours = expected === null ? 'one payment is expected' : `amount ${expected} is expected`
  findings.add('duplicate_payment', { ours, theirs })
}

/**
 * Whether several payments succeeded and more is left of them than the amount of the order, which a deposit and the
 * rest add up to. If no verified notification states that amount, the largest payment stands for it.
 */
function isSurplusLeft(payments: readonly PaymentFacts[], expected: string | null): boolean {
  const { duplicatePayment, paidAmount, refundedAmount } = summarisePayments(payments)
  if (!duplicatePayment) return false
  const kept = new Big(paidAmount).minus(refundedAmount)
  if (expected !== null) return kept.gt(expected)
  return listPaid(payments).every(({ amount }) => kept.gt(amount))
}

function findOddEntries(findings: Findings, { call, claim, elsewhere }: AnswerToJudge): void {
  const { unreadable, rounded } = listAnswered(call)
  for (const { id: paymentId, reason, text } of unreadable) {
    const ours = `not applied, because the entry ${reason}`
    findings.add('payment_unreadable', { paymentId, ours, theirs: shortenSide(text) })
  }
  for (const { id: paymentId, field, written, amount } of rounded) {
    const sides = { ours: `${field} ${amount}`, theirs: `${field} ${written}` }
    findings.add('amount_rounded', { paymentId, ...sides })
  }
  for (const { paymentId, transactionId } of elsewhere) {
    const ours = `listed under transaction ${transactionId}`
    const theirs = `listed under transaction ${claim.transactionId}`
    findings.add('payment_elsewhere', { paymentId, ours, theirs })
  }
}

function judgeChange(
  findings: Findings,
  { paymentId, field, before, after }: PaymentChange,
  known: readonly StoredPayment[],
  payments: readonly StoredPayment[],
): void {
  const old = known.find((one) => one.paymentId === paymentId)
  // A changed amount is a discrepancy since it was first shown, not only when it is confirmed.
  const isConfirmed = field === 'countedAmount' || field === 'countedRefunded'
  // An entry that cannot be read is a discrepancy of its own.
  if (!old || before === null || isConfirmed || field === 'unreadable') return
  if (field === 'missing') {
    const payment = payments.find((one) => one.paymentId === paymentId)
    const ours = `status ${payment?.status}, amount ${payment?.amount}`
    if (after !== 'true') findings.end('payment_missing', { paymentId })
    else findings.add('payment_missing', { paymentId, ours, theirs: 'not listed' })
    return
  }
  const kind = 'answer_went_backwards'
  // This answer ends whatever was odd in between.
  const counted = readCounted(old, field) ?? before
  for (const value of [after, counted]) findings.end(kind, { paymentId, ours: `${field} ${value}` })
  if (!wentBackwards(field, counted, after)) return
  findings.add(kind, { paymentId, ours: `${field} ${counted}`, theirs: `${field} ${after}` })
}

function readCounted(old: StoredPayment, field: string): string | undefined {
  if (field === 'status') return getCountedStatus(old)
  return field === 'amount' ? getCountedAmount(old) : undefined
}

function wentBackwards(field: string, before: string, after: string): boolean {
  if (field === 'status') return before === 'SUCCESS' && after !== 'SUCCESS'
  if (field === 'amount') return compareAmounts(before, after) !== 0
  return field === 'refundedAmount' && compareAmounts(after, before) < 0
}

/** Whether final payments refute it: a success if none succeeded; a failure only if all did, as attempts may fail. */
export function contradicts(
  { code, isOther }: Pick<NotifiedPayment, 'code' | 'isOther'>,
  payments: readonly Pick<PaymentFacts, 'status'>[],
): boolean {
  if (code === null || isOther || isOpenCode(code)) return false
  const paid = payments.filter(({ status }) => status === 'SUCCESS')
  return code === '0' ? paid.length === 0 : paid.length === payments.length
}

function describePayments(payments: readonly PaymentFacts[]): string {
  const described = payments.slice(0, 3).map(({ status, amount }) => `${status} ${amount}`)
  const rest = payments.length - described.length
  return [...described, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ')
}
