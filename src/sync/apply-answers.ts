import type { Config } from '../config/config.ts'
import { describeCode, isOpenCode } from '../gateway/response-codes.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import { comparePayments, lockPayments } from '../payments/apply-payments.ts'
import type { AppliedPayments, SnapshotRef, StoredPayment } from '../payments/odd-readings.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { PaymentElsewhere } from '../transactions/move-payments.ts'
import { summarisePayments } from '../transactions/summarise-payments.ts'
import { lockClaimed } from './fence.ts'
import { type NotifiedPayment, readNotifiedPayments } from './find-order-conflicts.ts'
import { listAnswered } from './list-answered.ts'
import { completeNames } from './name-transaction.ts'
import type { QueryEnd } from './schedule.ts'
import { isSetAside, readSetAside, type SetAside } from './set-aside.ts'
import type { ClaimedRow, QueryAnswer } from './types.ts'

/** An answer whose transaction and payments this commit has locked. */
export type LockedAnswer = QueryAnswer & {
  row: ClaimedRow
  known: StoredPayment[]
  /** The verified ones. */
  notified: NotifiedPayment[]
  /** Payments that the answer lists, but that stay under the transaction they are stored under. */
  elsewhere: PaymentElsewhere[]
  /** Payments that this commit has moved here from another transaction. */
  moved: string[]
  /** The unreadable entries that a person has set aside. */
  setAside: SetAside
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
  const isUnreadable = answers.some(({ call }) => listAnswered(call).unreadable.length > 0)
  const [rows, known, notified, setAside] = await pipeline(
    lockClaimed(tx, answers),
    lockPayments(tx, keys),
    readNotifiedPayments(tx, keys),
    isUnreadable && readSetAside(tx, keys),
  )
  return answers.map((answer, index) => {
    const row = rows.get(answer.claim.leaseId)
    const names = row && completeNames(row, notified[index] ?? [])
    return (
      row && {
        ...answer,
        row: names ? { ...row, ...names, isNamed: true } : row,
        known: known[index] ?? [],
        notified: (notified[index] ?? []).filter(({ isVerified }) => isVerified),
        elsewhere: [],
        moved: [],
        setAside: (setAside || [])[index] ?? new Set(),
      }
    )
  })
}

/** Compares answers with the stored payments, where no newer answer is stored. */
export function compareAnswers(
  { REFUND_CONFIRM_FAILED_MS: apartMs }: Pick<Config, 'REFUND_CONFIRM_FAILED_MS'>,
  locked: readonly LockedAnswer[],
): AppliedAnswer[] {
  return locked.map((one) => {
    const { row, call } = one
    if (!row.newer || call.outcome.kind !== 'answered') {
      return { ...one, snapshot: undefined, applied: undefined }
    }
    const snapshot = { asOf: row.asOf, callId: row.callId }
    return { ...one, snapshot, applied: compareAnswer(one, apartMs) }
  })
}

/**
 * The payments that stay under another transaction count as entries that were not applied; unreadable ones that
 * a person has set aside do not.
 */
function compareAnswer(
  { row, call, known, elsewhere, setAside }: LockedAnswer,
  apartMs: number,
): AppliedPayments {
  const listed = listAnswered(call)
  const applied = comparePayments(known, omitElsewhere(listed, elsewhere), row.asOf, apartMs)
  const isUnapplied = listed.unreadable.some((entry) => !isSetAside(setAside, entry))
  return { ...applied, unapplied: isUnapplied || elsewhere.length > 0 }
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
  applied: Pick<AppliedPayments, 'payments' | 'unapplied' | 'askAgainInMs'> | undefined,
): QueryEnd {
  if (outcome.kind === 'rejected') {
    const reason = describeCode(outcome.code, outcome.message)
    return isOpenCode(outcome.code)
      ? { kind: 'open', reason, lastError: reason }
      : { kind: 'failed', reason }
  }
  if (outcome.kind !== 'answered') return { kind: 'failed', reason: outcome.reason }
  if (!newer) return { kind: 'superseded' }
  const { payments = [], unapplied = false, askAgainInMs } = applied ?? {}
  const { final, state } = summarisePayments(payments)
  const open = (reason: string): QueryEnd => ({ kind: 'open', reason, askAgainInMs })
  if (unapplied) return open('an entry of the answer could not be applied')
  if (payments.some(({ missing, unlistedSince }) => missing || unlistedSince !== null)) {
    return open('the gateway no longer lists a payment')
  }
  return final ? { kind: 'final', askAgainInMs } : open(`${state}, not final`)
}
