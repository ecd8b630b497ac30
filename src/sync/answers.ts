import type { Tx } from '../db/client.ts'
import type { Call } from '../gateway/client.ts'
import { isOpenCode } from '../gateway/codes.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import {
  type Applied,
  applyPayments,
  lockKnown,
  type Snapshot,
  type StoredPayment,
} from '../payments/apply.ts'
import { type PaymentFacts, summarisePayments } from '../transactions/state.ts'
import { type Notice, readNotices } from './disagreements.ts'
import { type Answered, type LeasedRow, lockLeased, recordCalls } from './lease.ts'
import type { QueryEnd } from './schedule.ts'

/** An answer whose transaction this commit holds. */
export type Held = Answered & { row: LeasedRow; known: StoredPayment[]; notices: Notice[] }

/** Its call is recorded, and what it listed applied if nothing newer is stored. */
export type Written = Held & { snapshot: Snapshot | undefined; applied: Applied | undefined }

/** The answers whose leases are still held, with the rows of transactions and payments locked, in this order. */
export async function holdAnswers(tx: Tx, answers: readonly Answered[]): Promise<Held[]> {
  const rows = await lockLeased(tx, answers)
  const leased = answers.flatMap((answer) => {
    const row = rows.get(answer.claim.leaseId)
    return row ? [{ ...answer, row }] : []
  })
  const keys = leased.map(({ claim }) => claim)
  // Sent together, run one after the other.
  const [known, notices] = await Promise.all([lockKnown(tx, keys), readNotices(tx, keys)])
  return leased.map((one, index) => ({
    ...one,
    known: known[index] ?? [],
    notices: notices[index] ?? [],
  }))
}

/** Records the calls, and applies what they listed where nothing newer is stored. */
export async function writeAnswers(tx: Tx, held: readonly Held[]): Promise<Written[]> {
  if (held.length === 0) return []
  const callIds = await recordCalls(
    tx,
    held.map(({ claim, call, row }) => ({ claim, call, asOf: row.asOf })),
  )
  const written = held.map((one, index): Written => {
    const callId = callIds[index]
    const news = one.row.newer && one.call.outcome.kind === 'answered' && callId !== undefined
    const snapshot = news ? { asOf: one.row.asOf, callId } : undefined
    return { ...one, snapshot, applied: undefined }
  })
  const news = written.flatMap((one) => (one.snapshot ? [{ one, snapshot: one.snapshot }] : []))
  const applied = await applyPayments(
    tx,
    news.map(({ one, snapshot }) => ({
      key: one.claim,
      listed: listAnswered(one.call),
      snapshot,
      known: one.known,
    })),
  )
  for (const [index, { one }] of news.entries()) one.applied = applied[index]
  return written
}

/** What the gateway listed; nothing when it did not answer. */
export function listAnswered({ outcome }: Call<ListedPayment[]>): readonly ListedPayment[] {
  return outcome.kind === 'answered' ? outcome.value : []
}

/** What the query means for the schedule. Refunds have their own due times beside it. */
export function judgeEnd(
  { outcome }: Call<ListedPayment[]>,
  newer: boolean,
  payments: readonly (PaymentFacts & { missing: boolean })[],
): QueryEnd {
  if (outcome.kind === 'rejected') {
    return {
      kind: isOpenCode(outcome.code) ? 'open' : 'failed',
      why: `code ${outcome.code}: ${outcome.message}`,
    }
  }
  if (outcome.kind !== 'answered') return { kind: 'failed', why: outcome.reason }
  if (!newer) return { kind: 'overtaken' }
  const { final, state } = summarisePayments(payments)
  if (payments.some(({ missing }) => missing)) {
    return { kind: 'open', why: 'a payment is not listed any more' }
  }
  return final ? { kind: 'final' } : { kind: 'open', why: `${state}, not final` }
}
