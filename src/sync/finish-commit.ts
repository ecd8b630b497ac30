import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { recordChanges } from '../events/record-events.ts'
import type { AppliedPayments, PaymentChange, SnapshotRef } from '../payments/odd-readings.ts'
import { type LastStatement, pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { isFreed, isOver, isShownByPayment } from '../refunds/lifecycle.ts'
import type { ReconciledRefunds } from '../refunds/reconcile.ts'
import { notifyTransactionChanged } from '../transactions/due.ts'
import type { PaymentFacts } from '../transactions/summarise-payments.ts'
import type { SyncContext } from './context.ts'
import {
  type CommittedChanges,
  prepareCommittedEvents,
  readCommittedObjects,
} from './record-committed-events.ts'
import type { QueryEnd } from './schedule.ts'
import { listStateChanges, summarise, type TransactionSummary } from './summarise.ts'
import { type Claim, type ClaimEnd, type ClaimedRow, LOST } from './types.ts'
import { writeTransactions } from './write-transactions.ts'

/** What a commit with refunds has written so far, and what its query means for the schedule. */
type CommitParts = {
  claim: Claim
  row: ClaimedRow
  refunds: ReconciledRefunds
  /** Other transactions, of which payments moved to this one. */
  losing?: readonly TransactionSummary[]
  applied?: AppliedPayments | undefined
  /** Payments that the commit has moved here from another transaction. */
  moved?: readonly string[]
  snapshot?: SnapshotRef | undefined
  queryEnd: QueryEnd
  /** The claim does not end with this commit: a refund attempt is sent next. */
  continues?: boolean
  found: readonly RecordedDiscrepancy[]
}

/**
 * Finishes a commit with refunds: writes the transaction's summary, ends the claim unless it continues, and
 * builds the statement that records the events.
 * @returns the claim's end, what the query means for the schedule with the refunds taken into account, and the
 *   commit's last statement
 */
export async function finishCommit(
  ctx: Pick<SyncContext, 'config' | 'encryption'>,
  tx: Tx,
  parts: CommitParts,
): Promise<{ end: ClaimEnd; queryEnd: QueryEnd; last: LastStatement | undefined }> {
  const { claim, row, refunds, applied, moved = [], snapshot, queryEnd, found } = parts
  const { losing = [], continues = false } = parts
  const payments = applied?.payments ?? listFacts(refunds)
  const changed = refunds.changed || applied?.changed === true
  const refundsOpen = refunds.drafts.some((draft) => !isOver(draft))
  const unapplied = applied?.unapplied ?? row.unappliedEntries
  const facts = { claim, payments, changed, refundsOpen, unapplied, snapshot, before: row }
  const summary = summarise(facts)
  const isNew = applied !== undefined || changed || summary.isRevised
  const changes = {
    claim,
    changes: [...(applied?.changes ?? []), ...listFreed(refunds)],
    isRevised: summary.isRevised,
    turnsPaid: isNew && summary.turnsPaid,
    turnsFinal: isNew && summary.turnsFinal,
    drafts: refunds.drafts,
    external: refunds.externalChanges,
    moved,
  }
  const committed = [changes, ...losing.map(describeLosing)]
  const waiting = keepOpenForRefunds(queryEnd, refunds)
  const written = {
    key: claim,
    summary: isNew ? summary : undefined,
    ended: continues ? undefined : { claim, end: waiting },
    withRefunds: refunds.drafts.length > 0,
  }
  // An attempt that is sent next shows, although the transaction's own row stays as it is.
  if (!isNew && continues) notifyTransactionChanged(tx, claim)
  const [, [end = LOST], objects] = await pipeline(
    recordChanges(tx, listStateChanges([...(isNew ? [summary] : []), ...losing])),
    writeTransactions(tx, ctx.config, [
      ...(isNew || !continues ? [written] : []),
      ...losing.map((one) => ({ key: one, summary: one, ended: undefined, withRefunds: false })),
    ]),
    readCommittedObjects(tx, committed),
  )
  const abandoned = end.next === 'abandon' ? [claim] : []
  const last = await prepareCommittedEvents(ctx, tx, committed, objects, { found, abandoned })
  return { end, queryEnd: waiting, last }
}

/** Keeps the transaction open until its payments' refunded amounts show every refund that happened, or came back. */
function keepOpenForRefunds(end: QueryEnd, { drafts, payments }: ReconciledRefunds): QueryEnd {
  if (end.kind !== 'final') return end
  const unseen =
    drafts.some(({ now }) => !isShownByPayment(now)) ||
    payments.some(({ external }) => external.some(({ matched }) => !matched))
  const reason = 'a refund does not show in its payment yet'
  return unseen ? { kind: 'open', reason, askAgainInMs: end.askAgainInMs } : end
}

/** What this commit frees of payments, because refunds came back: the refunds themselves show nothing new. */
function listFreed({ drafts }: ReconciledRefunds): PaymentChange[] {
  return drafts
    .filter(({ before, now }) => isFreed(now) && !isFreed(before))
    .map(({ now: { paymentId } }) => ({ paymentId, field: 'freed', before: '', after: '' }))
}

/** Of a transaction that lost a payment: that is told about in any case. */
function describeLosing({
  merchantCode,
  transactionId,
  turnsPaid,
  turnsFinal,
}: TransactionSummary): CommittedChanges {
  const nothing = { changes: [], drafts: [], external: [], moved: [] }
  const claim = { merchantCode, transactionId }
  return { claim, ...nothing, isRevised: true, turnsPaid, turnsFinal }
}

function listFacts({ payments }: ReconciledRefunds): PaymentFacts[] {
  return payments.map(({ status, countedStatus, paymentMethod, amount, refundedNow }) => ({
    status,
    countedStatus,
    paymentMethod,
    amount,
    refundedAmount: refundedNow,
  }))
}
