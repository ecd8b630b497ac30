import { Big } from 'big.js'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import { DomainError } from '../errors.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockRefunds } from '../refunds/case.ts'
import { saveDraft } from '../refunds/draft.ts'
import { deriveExternalState, type ExternalRecord } from '../refunds/external-view.ts'
import type { RefundDraft } from '../refunds/lifecycle.ts'
import { rejudgeInferred } from '../refunds/match.ts'
import { describeGrowth, measureUnexplained, measureUnmatched } from '../refunds/obstacle.ts'
import type { LockedPayment } from '../refunds/types.ts'
import { describeDecided } from './refusals.ts'

export type ExternalOutcome = 'matched' | 'part_of_first_sight' | 'never_happened'

/** Creates the refusal of a decision about an external refund, with its state and the decision before. */
export function refuseExternal(row: ExternalRecord, detail: string): DomainError {
  const state = deriveExternalState(row)
  const text = `External refund ${row.id} is ${state}: ${detail}${describeDecided(row.resolution)}`
  return new DomainError('not_decidable', text, { extra: { state } })
}

/** Why the state of an external refund does not admit an outcome; undefined when it does. */
export function findExternalObstacle(
  row: Pick<ExternalRecord, 'matched' | 'outcome'>,
  outcome: ExternalOutcome,
): 'own' | 'already' | 'nothing_deducted' | undefined {
  const state = deriveExternalState(row)
  if (state === 'own') return 'own'
  if (state === outcome) return 'already'
  return state === 'released' && outcome === 'never_happened' ? 'nothing_deducted' : undefined
}

/**
 * Checks that the state of an external refund admits the decision.
 * @returns what the decision contradicts; null while nothing but its notification is known
 * @throws DomainError `not_decidable`
 */
export function findContrary(row: ExternalRecord, outcome: ExternalOutcome): string | null {
  const state = deriveExternalState(row)
  const obstacle = findExternalObstacle(row, outcome)
  if (obstacle === 'own') {
    const path = `/v1/refunds/${row.requestId}/resolution`
    throw refuseExternal(row, `it is a refund of this service, which is decided with POST ${path}`)
  }
  if (obstacle === 'already') throw refuseExternal(row, 'it is decided already')
  if (obstacle === 'nothing_deducted') {
    throw refuseExternal(row, 'nothing is deducted for it any more')
  }
  if (state === 'reserved') return null
  if (row.resolution !== null) return `a person decided it as ${row.resolution.outcome}`
  if (state === 'matched') return 'the refunded amount shows it'
  if (state === 'released')
    return 'its failure was notified, or another reading of its notification was matched'
  return 'the refunded amount showed it when the payment was first seen'
}

/** Whether the part of the payment's growth that matches no refund is at least as large as the external refund. */
export function fitsGrowth(
  { amount }: ExternalRecord,
  payment: LockedPayment,
  drafts: readonly RefundDraft[],
): boolean {
  return compareAmounts(amount, '0') > 0 && new Big(measureUnmatched(payment, drafts)).gte(amount)
}

/**
 * Checks that as much of what was refunded when the payment was first seen is not known to be other refunds.
 * @throws DomainError `not_decidable`
 */
export function checkFirstSight(
  row: ExternalRecord,
  payment: LockedPayment,
  drafts: readonly RefundDraft[],
): void {
  const own = drafts.flatMap(({ now }) =>
    now.paymentId === payment.paymentId && now.inFirstSight ? [now.amount] : [],
  )
  const known = addAmounts([payment.explainedAtFirst, ...own])
  const left = new Big(payment.refundedAtFirst).minus(known)
  if (left.gte(row.amount)) return
  const detail = `only ${left.toFixed()} of what was refunded when the payment was first seen is not explained by other refunds`
  throw refuseExternal(row, detail)
}

/** What became of the payment's refunds and of its growth. */
type JudgedAgain = { found: RecordedDiscrepancy[]; doubted: { refundId: string }[] }

/**
 * Judges the growth of a payment again, after a person's decision about a refund made elsewhere: what was inferred and is
 * not shown any more is left to a person, growth that nothing explains any more is a discrepancy in this commit, and not
 * only with the next answer; growth that is explained now is none. The caller holds the transaction's row, and has
 * written the decision.
 * @returns the discrepancies recorded for the first time, and the refunds that were left to a person
 */
export async function judgeGrowthAgain(
  tx: Tx,
  key: TransactionKey,
  paymentId: string,
): Promise<JudgedAgain> {
  const { merchantCode, transactionId } = key
  const { payments, drafts } = await lockRefunds(tx, { merchantCode, transactionId }, null)
  const payment = payments.find((one) => one.paymentId === paymentId)
  if (!payment) return { found: [], doubted: [] }
  rejudgeInferred(payment, drafts)
  const doubted = drafts.filter(({ transitions }) => transitions.length > 0)
  for (const draft of doubted) await saveDraft(tx, { ...draft, dueInMs: null })
  const unexplained = measureUnexplained(payment, drafts)
  const of = { merchantCode, transactionId }
  await resolveDiscrepancies(tx, [{ ...of, paymentId, kind: 'unexplained_growth' }])
  const growth =
    compareAmounts(unexplained, '0') > 0 ? [{ ...of, ...describeGrowth(payment, unexplained) }] : []
  const found = await recordDiscrepancies(tx, growth)
  return { found, doubted: doubted.map(({ now: { refundId } }) => ({ refundId })) }
}
