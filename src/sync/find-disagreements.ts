import { createHash } from 'node:crypto'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { NewDiscrepancy, ResolvedDiscrepancy } from '../discrepancies/types.ts'
import { isOpenCode } from '../gateway/response-codes.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { AppliedPayments, PaymentChange, StoredPayment } from '../payments/types.ts'
import type { PaymentElsewhere } from '../transactions/move-payments.ts'
import { type PaymentFacts, summarisePayments } from '../transactions/summarise-payments.ts'
import { listAnswered } from './list-answered.ts'
import type { NotifiedPayment } from './read-notified-payments.ts'
import type { ClaimedRow } from './types.ts'

/** An applied answer, with what was notified and stored before. */
type AnswerToJudge = {
  claim: TransactionKey
  call: GatewayCall<PaymentList>
  elsewhere: readonly PaymentElsewhere[]
  row: Pick<ClaimedRow, 'duplicatePayment' | 'unappliedEntries' | 'currency'>
  notified: readonly NotifiedPayment[]
  applied: AppliedPayments
}

type Disagreements = { found: NewDiscrepancy[]; resolved: ResolvedDiscrepancy[] }

/**
 * Finds what in an answer disagrees with an earlier answer, with a notification, or with what is expected of a
 * transaction, and which earlier disagreements it resolves.
 */
export function findDisagreements(answer: AnswerToJudge): Disagreements {
  const { claim, row, notified, applied } = answer
  const { merchantCode, transactionId } = claim
  const key = { merchantCode, transactionId }
  const { payments, changes } = applied
  const judged = changes.map((change) => judgeChange(key, change, payments))
  const found = [
    ...judged.flatMap((one) => one.found),
    ...findOddEntries(key, answer),
    ...findOtherCurrencies(key, answer),
  ]
  const resolved = judged.flatMap((one) => one.resolved)
  // What is found again is recorded after this.
  if (row.unappliedEntries) resolved.push({ ...key, kind: 'payment_unreadable' })
  const { duplicatePayment, final, paidAmount } = summarisePayments(payments)
  if (duplicatePayment && !row.duplicatePayment) {
    const paid = payments.filter(({ status }) => status === 'SUCCESS').length
    const theirs = `${paid} payments succeeded, together ${paidAmount}`
    found.push({ ...key, kind: 'duplicate_payment', ours: 'one payment is expected', theirs })
  }
  if (!duplicatePayment && row.duplicatePayment) {
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

/** The entries that were not applied, and the amounts that were read as the decimal next to them. */
function findOddEntries(key: TransactionKey, { call, elsewhere }: AnswerToJudge): NewDiscrepancy[] {
  const { unreadable, rounded } = listAnswered(call)
  return [
    ...unreadable.map(({ id, reason, text }): NewDiscrepancy => {
      const ours = `not applied, because the entry ${reason}`
      const kind = 'payment_unreadable'
      return { ...key, kind, paymentId: id, ours, theirs: shortenEntry(text) }
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

/** The amounts of a transaction are in one currency: a second one makes it doubtful what they are worth. */
function findOtherCurrencies(
  key: TransactionKey,
  { row: { currency: shown }, notified }: AnswerToJudge,
): NewDiscrepancy[] {
  const others = new Set(notified.flatMap(({ currency }) => currency ?? []))
  return [...others]
    .filter((currency) => shown !== null && currency !== shown)
    .map((currency) => ({
      ...key,
      kind: 'currency_changed',
      ours: `currency ${shown}`,
      theirs: `currency ${currency}`,
    }))
}

/** Both sides of a discrepancy are part of an index, whose rows are at most 2,700 bytes long. */
const MAX_ENTRY = 200

function shortenEntry(text: string): string {
  if (text.length <= MAX_ENTRY) return text
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return `${text.slice(0, MAX_ENTRY).toWellFormed()}… (SHA-256 ${digest}…)`
}

function judgeChange(
  key: TransactionKey,
  { paymentId, field, before, after }: PaymentChange,
  payments: readonly StoredPayment[],
): Disagreements {
  if (before === null) return { found: [], resolved: [] }
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
  const resolved = [{ ...subject, kind, ours: `${field} ${after}` } as const]
  if (!wentBackwards(field, before, after)) return { found: [], resolved }
  const sides = { ours: `${field} ${before}`, theirs: `${field} ${after}` }
  return { found: [{ ...subject, kind, ...sides }], resolved }
}

/** Whether the answer changes a transaction of which payments were known before. */
function revisesPayments({ payments, changes }: AnswerToJudge['applied']): boolean {
  const added = changes.filter(({ before }) => before === null).length
  return changes.length > 0 && added < payments.length
}

/** Whether the change takes back an earlier answer: a success, an amount, or refunded money. */
function wentBackwards(field: string, before: string, after: string): boolean {
  if (field === 'status') return before === 'SUCCESS'
  if (field === 'amount') return true
  return field === 'refundedAmount' && compareAmounts(after, before) < 0
}

/**
 * Whether a notification cannot be true of final payments. A success is contradicted when no payment succeeded,
 * or none with its amount; a failure when all succeeded, because one of several attempts may have failed.
 */
export function contradicts(
  { code, amount }: NotifiedPayment,
  payments: readonly Pick<PaymentFacts, 'status' | 'amount'>[],
): boolean {
  if (isOpenCode(code)) return false
  const paid = payments.filter(({ status }) => status === 'SUCCESS')
  if (code !== '0') return paid.length === payments.length
  if (paid.length === 0) return true
  const sums = [...paid.map((one) => one.amount), addAmounts(paid.map((one) => one.amount))]
  return amount !== null && !sums.some((sum) => compareAmounts(sum, amount) === 0)
}

const MAX_DESCRIBED = 3

function describePayments(payments: readonly PaymentFacts[]): string {
  const rest = payments.length - MAX_DESCRIBED
  const described = payments
    .slice(0, MAX_DESCRIBED)
    .map(({ status, amount }) => `${status} ${amount}`)
  return [...described, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ')
}
