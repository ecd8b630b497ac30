import type { TransactionKey } from '../db/transaction-key.ts'
import type { ChangeRow } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import type { AppliedPayments, PaymentChange, SnapshotRef } from '../payments/odd-readings.ts'
import { isFreed, isOver, isShownByPayment } from '../refunds/lifecycle.ts'
import type { ReconciledRefunds } from '../refunds/reconcile.ts'
import {
  isPaid,
  type PaymentFacts,
  type PaymentsSummary,
  summarisePayments,
} from '../transactions/summarise-payments.ts'
import type { QueryEnd } from './schedule.ts'
import type { Claim, LockedRow } from './types.ts'

/** A transaction in a commit that is about to be finished. The caller holds its row. */
export type CommitItem = {
  key: TransactionKey
  row: LockedRow
  /** Its payments as the commit leaves them. */
  payments: readonly PaymentFacts[]
  /** The gateway's answer and its snapshot, if the commit applies one. */
  applied?: AppliedPayments | undefined
  snapshot?: SnapshotRef | undefined
  /** Unset when the transaction has nothing to do with refunds. */
  refunds?: ReconciledRefunds | undefined
  /** Payments that the commit has moved here from another transaction. */
  moved?: readonly string[]
  /** Set when payments have moved away from it. */
  lost?: { refundsOpen: boolean }
  /** The claim that ends with this commit; none if a refund is sent next, or somebody else holds the lease. */
  ended?: { claim: Claim; end: QueryEnd } | undefined
}

/** The state and sums of a transaction, and what of it is different from before. */
export type TransactionSummary = PaymentsSummary & {
  /** The newest answer has an entry that was not applied. */
  unapplied: boolean
  /** Something visible to readers has changed. */
  changed: boolean
  /** A payment of it has succeeded. */
  paid: boolean
  /** Its state or its sums differ from before, or a payment has moved away from it. */
  isRevised: boolean
  /** It is paid for the first time, or becomes final, in this commit. */
  turnsPaid: boolean
  turnsFinal: boolean
}

/**
 * Summarises a transaction's payments; it is final only when its refunds are, too.
 * @returns undefined when nothing was applied, and the row is as its payments and refunds are
 */
export function summarise(item: CommitItem): TransactionSummary | undefined {
  const { row, payments, applied, refunds, lost } = item
  const summary = summarisePayments(payments)
  const unapplied = applied?.unapplied ?? row.unappliedEntries
  const refundsOpen = lost?.refundsOpen ?? refunds?.drafts.some((draft) => !isOver(draft)) ?? false
  const final = summary.final && !refundsOpen && !unapplied
  const paid = isPaid(summary.state)
  const differs =
    row.state !== summary.state ||
    row.duplicatePayment !== summary.duplicatePayment ||
    compareAmounts(row.paidAmount, summary.paidAmount) !== 0 ||
    compareAmounts(row.refundedAmount, summary.refundedAmount) !== 0
  const isChanged = lost || refunds?.changed || applied?.changed || row.isNamed || differs
  if (!isChanged && !applied) return undefined
  return {
    ...summary,
    ...{ unapplied, final, paid },
    changed: Boolean(isChanged) || unapplied !== row.unappliedEntries,
    isRevised: differs || lost !== undefined,
    turnsPaid: paid && !row.wasPaid,
    turnsFinal: final && !row.final,
  }
}

export type SummarisedItem = CommitItem & { summary: TransactionSummary | undefined }

/** Keeps the transaction open until its payments' refunded amounts show every refund that happened, or came back. */
export function keepOpenForRefunds(end: QueryEnd, refunds: ReconciledRefunds): QueryEnd {
  if (end.kind !== 'final') return end
  const unseen =
    refunds.drafts.some(({ now }) => !isShownByPayment(now)) ||
    refunds.payments.some(({ external }) => external.some(({ matched }) => !matched))
  const reason = 'a refund does not show in its payment yet'
  return unseen ? { kind: 'open', reason, askAgainInMs: end.askAgainInMs } : end
}

/** Lists what changes of a transaction's payments, with what refunds that came back free: they show nothing new themselves. */
export function listChanges({ applied, refunds }: CommitItem): PaymentChange[] {
  const freed = refunds?.drafts.filter(({ before, now }) => isFreed(now) && !isFreed(before)) ?? []
  return [
    ...(applied?.changes ?? []),
    ...freed.map(({ now: { paymentId } }) => {
      return { paymentId, field: 'freed', before: '', after: '' }
    }),
  ]
}

/** The changed state of a transaction, as a row of `changes`. */
export function listStateChange({ key, row, snapshot, summary }: SummarisedItem): ChangeRow[] {
  if (!summary || summary.state === row.state) return []
  const change = { field: 'state', before: row.state, after: summary.state, cause: 'query' }
  const { merchantCode, transactionId } = key
  return [{ merchantCode, transactionId, ...change, callId: snapshot?.callId }]
}

/** The payments of a transaction as its refunds were reconciled with them. */
export function listFacts({ payments }: Pick<ReconciledRefunds, 'payments'>): PaymentFacts[] {
  return payments.map(({ refundedNow, ...payment }) => ({
    ...payment,
    refundedAmount: refundedNow,
  }))
}
