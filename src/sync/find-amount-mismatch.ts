import { Big } from 'big.js'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { NewDiscrepancy, ResolvedDiscrepancy } from '../discrepancies/types.ts'
import { compareAmounts } from '../money.ts'
import {
  hasOpen,
  listPaid,
  type PaymentFacts,
  summarisePayments,
} from '../transactions/summarise-payments.ts'

/**
 * Compares what was paid with the order's amount, once no payment is open. Too much that was refunded since, or all of
 * it, is no disagreement any more.
 * @param expected the order's amount as a verified notification states it (decimal string); null for none
 * @param known the payments before this answer
 */
export function findAmountMismatch(
  key: TransactionKey,
  expected: string | null,
  { known, payments }: { known: readonly PaymentFacts[]; payments: readonly PaymentFacts[] },
): { found: NewDiscrepancy[]; resolved: ResolvedDiscrepancy[] } {
  if (expected === null) return { found: [], resolved: [] }
  const kind = 'amount_mismatch' as const
  const before = describeMismatch(expected, known)
  const now = describeMismatch(expected, payments)
  const found = now === undefined ? [] : [{ ...key, kind, ours: `amount ${expected}`, theirs: now }]
  return { found, resolved: before === undefined || before === now ? [] : [{ ...key, kind }] }
}

/** @returns what was paid instead of the order's amount; undefined if that agrees, or is not known yet */
function describeMismatch(expected: string, payments: readonly PaymentFacts[]): string | undefined {
  const paid = listPaid(payments).length
  if (paid === 0 || hasOpen(payments)) return undefined
  const { paidAmount, refundedAmount } = summarisePayments(payments)
  if (compareAmounts(paidAmount, expected) === 0) return undefined
  const kept = new Big(paidAmount).minus(refundedAmount)
  if (kept.eq(expected) || kept.lte(0)) return undefined
  return paid === 1 ? `paid ${paidAmount}` : `paid ${paidAmount} in ${paid} payments`
}
