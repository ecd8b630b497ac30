import type { TransactionKey } from '../../db/transaction-key.ts'
import {
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../../discrepancies/record-discrepancies.ts'
import type { RecordedDiscrepancy } from '../../discrepancies/types.ts'
import { compareAmounts } from '../../money.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { describeGrowth } from '../describe-growth.ts'
import { saveDraft } from '../draft.ts'
import { measureUnexplained } from '../measure-unmatched.ts'
import { lockRefunds } from '../reconcile/lock-refunds.ts'
import { rejudgeInferred } from '../reconcile/match-payments.ts'

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
