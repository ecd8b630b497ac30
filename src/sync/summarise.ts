import type { TransactionKey } from '../db/transaction-key.ts'
import type { ChangeRow } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import type { SnapshotRef } from '../payments/odd-readings.ts'
import {
  isPaid,
  type PaymentFacts,
  type PaymentsSummary,
  summarisePayments,
} from '../transactions/summarise-payments.ts'
import type { ClaimedRow } from './types.ts'

/** A transaction to summarise. The caller holds its row. */
export type SummaryInput = {
  claim: TransactionKey
  payments: readonly PaymentFacts[]
  refundsOpen: boolean
  /** The newest answer has an entry that was not applied. */
  unapplied: boolean
  /** Something visible to readers has changed. */
  changed: boolean
  /** The applied answer, if any. */
  snapshot: SnapshotRef | undefined
  /** The transaction before. */
  before: Pick<
    ClaimedRow,
    | 'state'
    | 'final'
    | 'wasPaid'
    | 'unappliedEntries'
    | 'paidAmount'
    | 'refundedAmount'
    | 'duplicatePayment'
  >
}

/** The summary of a transaction: its state and sums. */
export type TransactionSummary = PaymentsSummary &
  Omit<SummaryInput, 'claim' | 'payments' | 'refundsOpen'> &
  TransactionKey & {
    /** A payment of it has succeeded. */
    paid: boolean
    /** Its state or its sums differ from before, whatever of its payments changed. */
    isRevised: boolean
    /** It is paid for the first time, or becomes final, in this commit. */
    turnsPaid: boolean
    turnsFinal: boolean
  }

/** Summarises a transaction's payments; it is final only when its refunds are, too. */
export function summarise({
  claim,
  payments,
  refundsOpen,
  ...rest
}: SummaryInput): TransactionSummary {
  const { merchantCode, transactionId } = claim
  const summary = summarisePayments(payments)
  const final = summary.final && !refundsOpen && !rest.unapplied
  const turnsFinal = final && !rest.before.final
  const paid = isPaid(summary.state)
  const turnsPaid = paid && !rest.before.wasPaid
  const isRevised = differsFrom(rest.before, summary)
  const changed = rest.changed || isRevised || rest.unapplied !== rest.before.unappliedEntries
  const turns = { paid, isRevised, turnsPaid, turnsFinal }
  return { merchantCode, transactionId, ...summary, ...rest, changed, final, ...turns }
}

function differsFrom(before: SummaryInput['before'], now: PaymentsSummary): boolean {
  return (
    before.state !== now.state ||
    before.duplicatePayment !== now.duplicatePayment ||
    compareAmounts(before.paidAmount, now.paidAmount) !== 0 ||
    compareAmounts(before.refundedAmount, now.refundedAmount) !== 0
  )
}

/** Lists the changed states, as rows of `changes`. */
export function listStateChanges(summaries: readonly TransactionSummary[]): ChangeRow[] {
  return summaries.filter(({ state, before }) => state !== before.state).map(describeStateChange)
}

function describeStateChange({
  merchantCode,
  transactionId,
  before,
  state,
  snapshot,
}: TransactionSummary): ChangeRow {
  const after = { field: 'state', before: before.state, after: state, cause: 'query' }
  return { merchantCode, transactionId, ...after, callId: snapshot?.callId }
}
