import type { Tx } from '../db/client.ts'
import type { Closing, Found } from '../discrepancies/record.ts'
import { isOpenCode } from '../gateway/codes.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { Change, StoredPayment, TransactionKey } from '../payments/apply.ts'
import { type PaymentFacts, summarisePayments } from '../transactions/state.ts'

/** What a payment's notification said, where its hash verified. */
export type Notice = { code: string; amount: string | null }

/** What an applied answer shows, and what was there before. */
export type Seen = {
  claim: TransactionKey
  row: { duplicatePayment: boolean }
  notices: readonly Notice[]
  applied: { payments: readonly StoredPayment[]; changes: readonly Change[] }
}

/** A flood of notifications that all differ must not make every settling commit read them all. */
const LOOKS_AT = 1_000
/** Of those that verified, as many count. */
const MAX_NOTICES = 20

/** What the newest notifications of transactions said whose hash verified, in the order of the keys. */
export async function readNotices(tx: Tx, keys: readonly TransactionKey[]): Promise<Notice[][]> {
  const notices = keys.map((): Notice[] => [])
  if (keys.length === 0) return notices
  const rows = await tx<(Notice & { at: number })[]>`
    select k.at::int as at, e.code, e.amount
    from unnest(
        ${keys.map((key) => key.merchantCode)}::text[], ${keys.map((key) => key.transactionId)}::text[]
      ) with ordinality as k (merchant_code, transaction_id, at),
      lateral (
        select code, amount from (
          select code, amount, verdict, last_received_at, id from ipn_events
          where merchant_code = k.merchant_code and transaction_id = k.transaction_id
          limit ${LOOKS_AT}
        ) as looked
        where verdict = 'verified' and code is not null
        order by last_received_at desc, id desc limit ${MAX_NOTICES}
      ) as e`
  for (const { at, ...notice } of rows) notices[at - 1]?.push(notice)
  return notices
}

/**
 * What an answer shows to be in disagreement: with an earlier answer, with what was notified, with what
 * may be expected. And what of it is in agreement again.
 */
export function findDisagreements(seen: Seen): { found: Found[]; closings: Closing[] } {
  const { merchantCode, transactionId } = seen.claim
  const key = { merchantCode, transactionId }
  const found: Found[] = []
  const closings: Closing[] = []
  for (const change of seen.applied.changes) {
    const { paymentId, field, before, after } = change
    if (before === null) continue
    const of = { ...key, paymentId }
    if (field === 'missing') {
      const kind = 'payment_missing'
      const payment = seen.applied.payments.find((one) => one.paymentId === paymentId)
      const ours = `status ${payment?.status}, amount ${payment?.amount}`
      if (after === 'true') found.push({ ...of, kind, ours, theirs: 'not listed' })
      else closings.push({ ...of, kind })
      continue
    }
    const kind = 'answer_went_backwards'
    closings.push({ ...of, kind, ours: `${field} ${after}` })
    if (wentBackwards(field, before, after)) {
      found.push({ ...of, kind, ours: `${field} ${before}`, theirs: `${field} ${after}` })
    }
  }
  const { duplicatePayment, final, paidAmount } = summarisePayments(seen.applied.payments)
  if (duplicatePayment && !seen.row.duplicatePayment) {
    const paid = seen.applied.payments.filter(({ status }) => status === 'SUCCESS').length
    const theirs = `${paid} payments succeeded, together ${paidAmount}`
    found.push({ ...key, kind: 'duplicate_payment', ours: 'one payment is expected', theirs })
  }
  if (!duplicatePayment && seen.row.duplicatePayment) {
    closings.push({ ...key, kind: 'duplicate_payment' })
  }
  if (!final) return { found, closings }
  const kind = 'ipn_contradicts_query'
  if (revises(seen.applied)) closings.push({ ...key, kind })
  for (const notice of seen.notices.filter((one) => contradicts(one, seen.applied.payments))) {
    const { code, amount } = notice
    const ours = amount === null ? `code ${code}` : `code ${code}, amount ${amount}`
    found.push({ ...key, kind, ours, theirs: describe(seen.applied.payments) })
  }
  return { found, closings }
}

/** There is something new, and something was known before. */
function revises({ payments, changes }: Seen['applied']): boolean {
  const added = changes.filter(({ before }) => before === null).length
  return changes.length > 0 && added < payments.length
}

/** An earlier answer is taken back: a success, an amount, or money that had been given back. */
function wentBackwards(field: string, before: string, after: string): boolean {
  if (field === 'status') return before === 'SUCCESS'
  if (field === 'amount') return true
  return field === 'refundedAmount' && compareAmounts(after, before) < 0
}

/**
 * Whether a notification cannot be true of payments that came to their end: paid, and none succeeded, or
 * none of that amount; failed, and none did. One of several attempts may well have failed.
 */
export function contradicts({ code, amount }: Notice, payments: readonly PaymentFacts[]): boolean {
  if (isOpenCode(code)) return false
  const paid = payments.filter(({ status }) => status === 'SUCCESS')
  if (code !== '0') return paid.length === payments.length
  if (paid.length === 0) return true
  const sums = [...paid.map((one) => one.amount), addAmounts(paid.map((one) => one.amount))]
  return amount !== null && !sums.some((sum) => compareAmounts(sum, amount) === 0)
}

const SHOWN = 3

function describe(payments: readonly PaymentFacts[]): string {
  const rest = payments.length - SHOWN
  const shown = payments.slice(0, SHOWN).map(({ status, amount }) => `${status} ${amount}`)
  return [...shown, ...(rest > 0 ? [`and ${rest} more`] : [])].join(', ')
}
