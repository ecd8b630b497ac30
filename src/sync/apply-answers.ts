import type { Config } from '../config/config.ts'
import { gatewayCalls } from '../db/schema.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { describeCode, isOpenCode } from '../gateway/response-codes.ts'
import { lockPayments } from '../payments/apply-payments.ts'
import {
  type AppliedPayments,
  comparePayments,
  type SnapshotRef,
} from '../payments/compare-payments.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { isShownByPayment } from '../refunds/lifecycle.ts'
import type { ReconciledRefunds } from '../refunds/reconcile.ts'
import { makeDue } from '../transactions/due.ts'
import { findElsewhere, movePayments } from '../transactions/move-payments.ts'
import { type PaymentFacts, summarisePayments } from '../transactions/summarise-payments.ts'
import { type LockedAnswer, lockUnclaimed } from './fence.ts'
import type { QueryEnd } from './schedule.ts'
import { type CommitItem, type LockedRow, listAnswered } from './types.ts'

/**
 * Moves payments to the transaction of this answer, which lists them, from transactions whose answers no longer do.
 * A payment moves only while this commit holds the rows of both. It does not wait for the other row, because two
 * such commits could deadlock: while that row is locked, the payment stays, and this transaction remains open and
 * is queried again. The other transactions are queried as well.
 * @returns the answer, the transactions that lost payments, and the discrepancies recorded for the first time
 */
export async function adoptPayments(tx: Tx, locked: LockedAnswer) {
  const { claim, call, row, known } = locked
  const { merchantCode } = claim
  const own = new Set(known.map(({ paymentId }) => paymentId))
  const unknown = listAnswered(call).payments.flatMap(({ id }) => (own.has(id) ? [] : [id]))
  const elsewhere = row.newer && unknown.length > 0 ? await findElsewhere(tx, claim, unknown) : []
  if (elsewhere.length === 0) return { locked, losing: [], found: [] }
  const others = new Set(elsewhere.map(({ transactionId }) => transactionId))
  const keys = [...others].map((transactionId) => ({ merchantCode, transactionId }))
  const free = await lockUnclaimed(tx, keys, 'skip locked')
  const freeKeys = free.map(({ key }) => key)
  await requestQueries(tx, freeKeys)
  const from = freeKeys.map(({ transactionId }) => transactionId)
  const { moved, found } = await movePayments(tx, claim, unknown, from)
  const [adopted = []] = await lockPayments(tx, [claim])
  const ids = new Set(moved.map(({ paymentId }) => paymentId))
  const losingIds = new Set(moved.map(({ transactionId }) => transactionId))
  const losing = free.filter(({ key }) => losingIds.has(key.transactionId))
  const left = elsewhere.filter(({ paymentId }) => !ids.has(paymentId))
  return {
    locked: { ...locked, known: adopted, elsewhere: left, moved: [...ids] },
    losing: await describeLosing(tx, losing),
    found,
  }
}

async function requestQueries(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
  if (keys.length === 0) return
  await tx`
    update transactions as t set ${makeDue(tx)}
    from ${selectKeys(tx, keys)}, ${tx.unsafe(CLOCK)}
    where t.merchant_code = k.merchant_code and t.transaction_id = k.transaction_id and t.due_at is null`
}

async function describeLosing(
  tx: Tx,
  losing: readonly { key: TransactionKey; row: LockedRow }[],
): Promise<CommitItem[]> {
  if (losing.length === 0) return []
  const keys = losing.map(({ key }) => key)
  const [left, open] = await pipeline(lockPayments(tx, keys), findOpenRefunds(tx, keys))
  return losing.map(({ key, row }, index) => {
    return {
      key,
      row,
      payments: left[index] ?? [],
      movedAway: { refundsOpen: open[index] ?? false },
    }
  })
}

/** Whether each transaction has a refund that has not ended, in the order of the keys. */
async function findOpenRefunds(tx: Tx, keys: readonly TransactionKey[]): Promise<boolean[]> {
  const rows = await tx<{ isOpen: boolean }[]>`
    select exists (select from (
        select status from refunds as r where ${tx.unsafe(byTransaction('r'))} offset 0) as r
      where status not in ('succeeded', 'failed', 'needs_review', 'returned')) as "isOpen"
    from ${selectKeys(tx, keys)} order by k.ordinality`
  return rows.map(({ isOpen }) => isOpen)
}

/** `snapshot` and `applied` are unset if a newer answer is stored or the query failed. */
export type AppliedAnswer = LockedAnswer & {
  snapshot: SnapshotRef | undefined
  applied: AppliedPayments | undefined
}

/**
 * Compares answers with the stored payments, unless a newer answer is stored. Payments that stay elsewhere count as
 * entries that were not applied. Unreadable entries that a person has dismissed do not; if they have no id, payments
 * that are not listed count as gone in spite of them.
 */
export function compareAnswers(
  { REFUND_CONFIRM_FAILED_MS: apartMs }: Pick<Config, 'REFUND_CONFIRM_FAILED_MS'>,
  locked: readonly LockedAnswer[],
): AppliedAnswer[] {
  return locked.map((one) => {
    const { row, call, known, elsewhere, undismissed } = one
    if (!row.newer || call.outcome.kind !== 'answered') {
      return { ...one, snapshot: undefined, applied: undefined }
    }
    const away = new Set(elsewhere.map(({ paymentId }) => paymentId))
    const list = call.outcome.value
    const payments = list.payments.filter(({ id }) => !away.has(id))
    const unreadable = list.unreadable.filter(
      (one) => one.id !== undefined || undismissed.includes(one),
    )
    const applied = comparePayments(known, { payments, unreadable }, row.asOf, apartMs)
    return {
      ...one,
      snapshot: { asOf: row.asOf, callId: row.callId },
      applied: { ...applied, unapplied: undismissed.length > 0 || elsewhere.length > 0 },
    }
  })
}

/** How the query ended for the schedule of the transaction. Refunds have due times of their own. */
export function classifyAnswer({ call, row, applied }: AppliedAnswer): QueryEnd {
  const { outcome } = call
  if (outcome.kind === 'rejected') {
    const reason = describeCode(outcome.code, outcome.message)
    return isOpenCode(outcome.code)
      ? { kind: 'open', reason, lastError: reason }
      : { kind: 'failed', reason }
  }
  if (outcome.kind !== 'answered') return { kind: 'failed', reason: outcome.reason }
  if (!row.newer) return { kind: 'superseded' }
  const { payments = [], unapplied = false, askAgainInMs } = applied ?? {}
  const { final, state } = summarisePayments(payments)
  const open = (reason: string): QueryEnd => ({ kind: 'open', reason, askAgainInMs })
  if (unapplied) return open('an entry of the answer could not be applied')
  if (payments.some(({ missing, unlistedSince }) => missing || unlistedSince !== null)) {
    return open('the gateway no longer lists a payment')
  }
  return final ? { kind: 'final', askAgainInMs } : open(`${state}, not final`)
}

const CALL_COLUMNS = {
  ...pickColumns(gatewayCalls, 'merchantCode', 'transactionId', 'command', 'bodyHmac', 'bodyKeyId'),
  ...pickColumns(gatewayCalls, 'sentAt', 'durationMs', 'outcome', 'httpStatus', 'code', 'message'),
  ...pickColumns(gatewayCalls, 'received'),
  // As text, so that the members of the answer stay as the gateway wrote them.
  ...{ id: 'bigint', answer: 'text' },
}

/** Every column, so that none is left out unnoticed. */
type CallRow = Record<keyof typeof CALL_COLUMNS, unknown>

const CODES = { answered: '0', unavailable: null, unknown: null }

/** Records queries as evidence, whatever their outcome, under the ids that the fence reserved. */
export async function recordCalls(tx: Tx, calls: readonly AppliedAnswer[]): Promise<void> {
  if (calls.length === 0) return
  const rows = calls.map(
    ({ claim, call: { outcome, record }, row }): CallRow => ({
      merchantCode: claim.merchantCode,
      transactionId: claim.transactionId,
      id: row.callId,
      command: record.command,
      sentAt: row.asOf,
      durationMs: record.durationMs,
      outcome: outcome.kind,
      httpStatus: record.httpStatus,
      code: outcome.kind === 'rejected' ? outcome.code : CODES[outcome.kind],
      message: 'message' in outcome ? outcome.message : outcome.reason,
      answer: outcome.kind === 'answered' ? outcome.value.json : null,
      received: record.received,
      bodyHmac: `\\x${record.bodyHmac.value.toString('hex')}`,
      bodyKeyId: record.bodyHmac.keyId,
    }),
  )
  await tx`
    insert into gateway_calls (id, merchant_code, transaction_id, command, body_hmac, body_key_id,
      sent_at, duration_ms, outcome, http_status, code, message, answer, received)
    select id, merchant_code, transaction_id, command, body_hmac, body_key_id, sent_at,
      duration_ms, outcome, http_status, code, message, answer::jsonb, received
    from ${rowSet(tx, 'c', CALL_COLUMNS, rows)}`
}

/**
 * Keeps the transaction open until its payments show every refund that happened or came back, and schedules the query
 * after which a refund that they never showed is reported.
 */
export function keepOpenForRefunds(end: QueryEnd, refunds: ReconciledRefunds): QueryEnd {
  if (end.kind !== 'final' && end.kind !== 'open') return end
  const waits = [end.askAgainInMs, refunds.askAgainInMs].filter((ms) => ms !== undefined)
  const askAgainInMs = waits.length === 0 ? undefined : Math.min(...waits)
  const unseen =
    refunds.drafts.some(({ now }) => !isShownByPayment(now)) ||
    refunds.payments.some(({ external }) => external.some(({ matched }) => !matched))
  const reason = 'a refund does not show in its payment yet'
  return unseen && end.kind === 'final'
    ? { kind: 'open', reason, askAgainInMs }
    : { ...end, askAgainInMs }
}

export const listFacts = ({ payments }: Pick<ReconciledRefunds, 'payments'>): PaymentFacts[] =>
  payments.map(({ refundedNow: refundedAmount, ...payment }) => ({ ...payment, refundedAmount }))
