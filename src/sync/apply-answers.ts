import { type ChangeRow, recordChanges } from '../events/record-changes.ts'
import { isOpenCode } from '../gateway/response-codes.ts'
import type { GatewayCall, ListedPayment } from '../gateway/types.ts'
import {
  comparePayments,
  listPaymentChanges,
  lockPayments,
  type PaymentsToWrite,
  writePayments,
} from '../payments/apply-payments.ts'
import type { AppliedPayments, SnapshotRef, StoredPayment } from '../payments/types.ts'
import { pipeline } from '../platform/postgres/pipeline.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type PaymentFacts, summarisePayments } from '../transactions/summarise-payments.ts'
import { lockClaimed } from './fence.ts'
import { type NotifiedPayment, readNotifiedPayments } from './read-notified-payments.ts'
import { recordCalls } from './record-calls.ts'
import type { QueryEnd } from './schedule.ts'
import type { ClaimedRow, QueryAnswer } from './types.ts'

/** An answer whose transaction and payments this commit has locked. */
export type LockedAnswer = QueryAnswer & {
  row: ClaimedRow
  known: StoredPayment[]
  notified: NotifiedPayment[]
}

/** A compared answer. `snapshot` and `applied` are unset when a newer answer is stored or the query failed. */
export type AppliedAnswer = LockedAnswer & {
  snapshot: SnapshotRef | undefined
  applied: AppliedPayments | undefined
}

/**
 * Locks the transactions whose leases are still held, then their payments, in one round trip.
 * @returns in the order of the answers; undefined for a lost lease
 */
export async function lockAnswers(
  tx: Tx,
  answers: readonly QueryAnswer[],
): Promise<(LockedAnswer | undefined)[]> {
  const keys = answers.map(({ claim }) => claim)
  const [rows, known, notified] = await pipeline(
    lockClaimed(tx, answers),
    lockPayments(tx, keys),
    readNotifiedPayments(tx, keys),
  )
  return answers.map((answer, index) => {
    const row = rows.get(answer.claim.leaseId)
    return row && { ...answer, row, known: known[index] ?? [], notified: notified[index] ?? [] }
  })
}

/** Compares answers with the stored payments, where no newer answer is stored. */
export function compareAnswers(locked: readonly LockedAnswer[]): AppliedAnswer[] {
  return locked.map((one) => {
    const { row, call, known } = one
    if (!row.newer || call.outcome.kind !== 'answered') {
      return { ...one, snapshot: undefined, applied: undefined }
    }
    const snapshot = { asOf: row.asOf, callId: row.callId }
    return { ...one, snapshot, applied: comparePayments(known, call.outcome.value) }
  })
}

/**
 * Records the calls, writes the payments, and records every difference.
 * @param more further changes of the commit
 * @throws PaymentElsewhereError
 */
export async function writeAnswers(
  tx: Tx,
  answers: readonly AppliedAnswer[],
  more: readonly ChangeRow[] = [],
): Promise<void> {
  const written = answers.flatMap(({ claim: key, snapshot, applied }): PaymentsToWrite[] =>
    snapshot && applied ? [{ key, snapshot, applied }] : [],
  )
  await pipeline(
    recordCalls(tx, answers),
    writePayments(tx, written),
    recordChanges(tx, [...listPaymentChanges(written), ...more]),
  )
}

/** The payments the gateway listed; empty when the query failed. */
export function listAnswered({ outcome }: GatewayCall<ListedPayment[]>): readonly ListedPayment[] {
  return outcome.kind === 'answered' ? outcome.value : []
}

/** Classifies an answer for the transaction's schedule. Refunds have due times of their own. */
export function classifyAnswer(
  { outcome }: GatewayCall<ListedPayment[]>,
  newer: boolean,
  payments: readonly (PaymentFacts & { missing: boolean })[],
): QueryEnd {
  if (outcome.kind === 'rejected') {
    return {
      kind: isOpenCode(outcome.code) ? 'open' : 'failed',
      reason: `code ${outcome.code}: ${outcome.message}`,
    }
  }
  if (outcome.kind !== 'answered') return { kind: 'failed', reason: outcome.reason }
  if (!newer) return { kind: 'superseded' }
  const { final, state } = summarisePayments(payments)
  if (payments.some(({ missing }) => missing)) {
    return { kind: 'open', reason: 'the gateway no longer lists a payment' }
  }
  return final ? { kind: 'final' } : { kind: 'open', reason: `${state}, not final` }
}
