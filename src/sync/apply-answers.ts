import { isOpenCode } from '../gateway/response-codes.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import { applyPayments, lockPayments } from '../payments/apply-payments.ts'
import type { AppliedPayments, SnapshotRef, StoredPayment } from '../payments/types.ts'
import { pipeline } from '../platform/postgres/pipeline.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { movePayments, type PaymentElsewhere } from '../transactions/move-payments.ts'
import { summarisePayments } from '../transactions/summarise-payments.ts'
import { lockClaimed } from './fence.ts'
import { listAnswered } from './list-answered.ts'
import { type NotifiedPayment, readNotifiedPayments } from './read-notified-payments.ts'
import { recordCalls } from './record-calls.ts'
import type { QueryEnd } from './schedule.ts'
import type { ClaimedRow, QueryAnswer } from './types.ts'

/** An answer whose transaction and payments this commit has locked. */
export type LockedAnswer = QueryAnswer & {
  row: ClaimedRow
  known: StoredPayment[]
  notified: NotifiedPayment[]
  /** Payments that the answer lists, but that stay under the transaction they are stored under. */
  elsewhere: PaymentElsewhere[]
}

/** A recorded answer. `snapshot` and `applied` are unset when a newer answer is stored or the query failed. */
export type AppliedAnswer = LockedAnswer & {
  snapshot: SnapshotRef | undefined
  applied: AppliedPayments | undefined
}

/**
 * Locks the transactions whose leases are still held, then their payments. Omits the answers of lost leases.
 * @param movesPayments also moves payments that another transaction's answers no longer list to the one that
 *   lists them. Without it, `applyAnswers` throws for a payment that is stored under another transaction.
 */
export async function lockAnswers(
  tx: Tx,
  answers: readonly QueryAnswer[],
  { movesPayments = false } = {},
): Promise<LockedAnswer[]> {
  const rows = await lockClaimed(tx, answers)
  const claimed = answers.flatMap((answer) => {
    const row = rows.get(answer.claim.leaseId)
    return row ? [{ ...answer, row }] : []
  })
  const keys = claimed.map(({ claim }) => claim)
  const elsewhere: PaymentElsewhere[][] = []
  for (const { claim, call, row } of movesPayments ? claimed : []) {
    const ids = row.newer ? listAnswered(call).payments.map(({ id }) => id) : []
    elsewhere.push(ids.length > 0 ? await movePayments(tx, claim, ids) : [])
  }
  const [known, notified] = await pipeline(lockPayments(tx, keys), readNotifiedPayments(tx, keys))
  return claimed.map((one, index) => ({
    ...one,
    known: known[index] ?? [],
    notified: notified[index] ?? [],
    elsewhere: elsewhere[index] ?? [],
  }))
}

/** Records the calls, and applies their answers to the payments where no newer answer is stored. */
export async function applyAnswers(
  tx: Tx,
  locked: readonly LockedAnswer[],
): Promise<AppliedAnswer[]> {
  if (locked.length === 0) return []
  const callIds = await recordCalls(
    tx,
    locked.map(({ claim, call, row }) => ({ claim, call, asOf: row.asOf })),
  )
  const answers = locked.map((one, index): AppliedAnswer => {
    const callId = callIds[index]
    const applies = one.row.newer && one.call.outcome.kind === 'answered' && callId !== undefined
    const snapshot = applies ? { asOf: one.row.asOf, callId } : undefined
    return { ...one, snapshot, applied: undefined }
  })
  const newer = answers.flatMap((one) => (one.snapshot ? [{ one, snapshot: one.snapshot }] : []))
  const applied = await applyPayments(
    tx,
    newer.map(({ one, snapshot }) => ({
      key: one.claim,
      listed: omitElsewhere(listAnswered(one.call), one.elsewhere),
      snapshot,
      stored: one.known,
    })),
  )
  for (const [index, { one }] of newer.entries()) {
    const own = applied[index]
    one.applied = own && { ...own, unapplied: own.unapplied || one.elsewhere.length > 0 }
  }
  return answers
}

function omitElsewhere(list: PaymentList, elsewhere: readonly PaymentElsewhere[]): PaymentList {
  if (elsewhere.length === 0) return list
  const ids = new Set(elsewhere.map(({ paymentId }) => paymentId))
  return { ...list, payments: list.payments.filter(({ id }) => !ids.has(id)) }
}

/** Classifies an answer for the transaction's schedule. Refunds have due times of their own. */
export function classifyAnswer(
  { outcome }: GatewayCall<PaymentList>,
  newer: boolean,
  applied: Pick<AppliedPayments, 'payments' | 'unapplied'> | undefined,
): QueryEnd {
  if (outcome.kind === 'rejected') {
    return {
      kind: isOpenCode(outcome.code) ? 'open' : 'failed',
      reason: `code ${outcome.code}: ${outcome.message}`,
    }
  }
  if (outcome.kind !== 'answered') return { kind: 'failed', reason: outcome.reason }
  if (!newer) return { kind: 'superseded' }
  const { payments = [], unapplied = false } = applied ?? {}
  const { final, state } = summarisePayments(payments)
  if (unapplied) return { kind: 'open', reason: 'an entry of the answer could not be applied' }
  if (payments.some(({ missing, unlistedSince }) => missing || unlistedSince !== null)) {
    return { kind: 'open', reason: 'the gateway no longer lists a payment' }
  }
  return final ? { kind: 'final' } : { kind: 'open', reason: `${state}, not final` }
}
