import { compareAmounts } from '../../money.ts'
import type { TransactionView } from '../../transactions/view.ts'
import { TEXTS } from '../texts/en.ts'

const { headline, payment } = TEXTS.story

/** Returns the state of a transaction and its amounts in words, e.g. "Paid in full, 250,000 VND". */
export function describeState(shown: TransactionView): string {
  const amounts = {
    paid: shown.paidAmount,
    refunded: shown.refundedAmount,
    expected: shown.expectedAmount ?? '0',
    currency: shown.currency,
  }
  switch (shown.state) {
    case 'pending':
      return describePending(shown)
    case 'failed':
      return headline.failed
    case 'paid':
      return headline[comparePaid(shown)](amounts)
    case 'partially_refunded':
      return headline.partlyRefunded(payment[comparePaid(shown)], amounts)
    case 'refunded':
      return headline.refunded(amounts)
  }
}

function describePending({ sync, payments }: TransactionView): string {
  if (sync.status === 'unconfirmed') return headline.unconfirmed
  return payments.length === 0 ? headline.none : headline.inProgress
}

/** Compares what was paid with the amount of the order, where a verified notification states that. */
function comparePaid({ paidAmount, expectedAmount }: TransactionView): keyof typeof payment {
  if (expectedAmount === null) return 'paid'
  const compared = compareAmounts(paidAmount, expectedAmount)
  if (compared === 0) return 'paidInFull'
  return compared < 0 ? 'paidInPart' : 'overpaid'
}
