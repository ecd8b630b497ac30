import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { type ChangeRow, recordChanges } from '../events/record-events.ts'
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

/** A claimed transaction in a commit that is about to be finished. */
export type CommitItem = {
  claim: Claim
  row: ClaimedRow
  /** Its payments as the commit leaves them. */
  payments: readonly PaymentFacts[]
  /** The gateway's answer and its snapshot, if the commit applies one. */
  applied?: AppliedPayments | undefined
  snapshot?: SnapshotRef | undefined
  /** Unset when the transaction has nothing to do with refunds. */
  refunds?: ReconciledRefunds | undefined
  /** Payments that the commit has moved here from another transaction. */
  moved?: readonly string[]
  queryEnd: QueryEnd
  /** The claim does not end with this commit: a refund attempt is sent next, or somebody else holds the lease. */
  continues?: boolean
}

/** What a commit has found and changed beside its items. */
type CommitRest = {
  /** Discrepancies recorded for the first time; their statements may still be under way. */
  found: PromiseLike<readonly RecordedDiscrepancy[]>
  /** Changes that are still to be recorded. */
  changes?: readonly ChangeRow[]
  /** Other transactions, of which payments moved to an item. */
  losing?: readonly TransactionSummary[]
}

type FinishedCommit = {
  /** In the order of the items; `queryEnd` takes the refunds into account. */
  ends: { end: ClaimEnd; queryEnd: QueryEnd }[]
  found: readonly RecordedDiscrepancy[]
  last: LastStatement | undefined
}

/**
 * Finishes a commit: writes the transactions' summaries, ends the claims unless they continue, and builds the
 * statement that records the events, the commit's last one.
 */
export async function finishCommit(
  ctx: Pick<SyncContext, 'config' | 'encryption'>,
  tx: Tx,
  items: readonly CommitItem[],
  { found, changes = [], losing = [] }: CommitRest,
): Promise<FinishedCommit> {
  const ending = items.map((item) => {
    const summary = summariseItem(item)
    return { item, summary, queryEnd: keepOpenForRefunds(item.queryEnd, item.refunds) }
  })
  const summaries = [...ending.flatMap(({ summary }) => summary ?? []), ...losing]
  const committed = [
    ...ending.map(({ item, summary }) => describeItem(item, summary)),
    ...losing.map(describeLosing),
  ]
  // An attempt that is sent next shows, although the transaction's own row stays as it is.
  for (const { item, summary } of ending) {
    if (!summary && item.continues) notifyTransactionChanged(tx, item.claim)
  }
  const [, written, objects, recorded] = await pipeline(
    recordChanges(tx, [...changes, ...listStateChanges(summaries)]),
    writeTransactions(tx, ctx.config, [
      ...ending.map(({ item: { claim, row, refunds, continues }, summary, queryEnd }) => ({
        key: claim,
        summary,
        names: row.isNamed ? row : undefined,
        ended: continues ? undefined : { claim, end: queryEnd },
        withRefunds: refunds !== undefined && refunds.drafts.length > 0,
      })),
      ...losing.map((one) => ({
        ...{ key: one, summary: one, names: undefined, ended: undefined },
        withRefunds: false,
      })),
    ]),
    readCommittedObjects(tx, committed),
    found,
  )
  const abandoned = ending.flatMap(({ item: { claim } }, index) =>
    written[index]?.next === 'abandon' ? [claim] : [],
  )
  const rest = { found: recorded, abandoned }
  const last = await prepareCommittedEvents(ctx, tx, committed, objects, rest)
  const ends = ending.map(({ queryEnd }, index) => ({ end: written[index] ?? LOST, queryEnd }))
  return { ends, found: recorded, last }
}

/** @returns undefined when nothing was applied, and the row is as its payments and refunds are */
function summariseItem(item: CommitItem): TransactionSummary | undefined {
  const { claim, row, payments, applied, snapshot, refunds } = item
  const changed = refunds?.changed === true || applied?.changed === true || row.isNamed === true
  const refundsOpen = refunds?.drafts.some((draft) => !isOver(draft)) ?? false
  const unapplied = applied?.unapplied ?? row.unappliedEntries
  const facts = { claim, payments, changed, refundsOpen, unapplied, snapshot, before: row }
  const summary = summarise(facts)
  return applied || changed || summary.isRevised ? summary : undefined
}

/** Keeps the transaction open until its payments' refunded amounts show every refund that happened, or came back. */
function keepOpenForRefunds(end: QueryEnd, refunds: ReconciledRefunds | undefined): QueryEnd {
  if (end.kind !== 'final' || !refunds) return end
  const unseen =
    refunds.drafts.some(({ now }) => !isShownByPayment(now)) ||
    refunds.payments.some(({ external }) => external.some(({ matched }) => !matched))
  const reason = 'a refund does not show in its payment yet'
  return unseen ? { kind: 'open', reason, askAgainInMs: end.askAgainInMs } : end
}

function describeItem(
  { claim, applied, refunds, moved = [] }: CommitItem,
  { isRevised = false, turnsPaid = false, turnsFinal = false }: Partial<TransactionSummary> = {},
): CommittedChanges {
  const { drafts = [], externalChanges: external = [] } = refunds ?? {}
  const changes = [...(applied?.changes ?? []), ...listFreed(drafts)]
  return { claim, changes, isRevised, turnsPaid, turnsFinal, drafts, external, moved }
}

/** What this commit frees of payments, because refunds came back: the refunds themselves show nothing new. */
function listFreed(drafts: ReconciledRefunds['drafts']): PaymentChange[] {
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

/** The payments of a transaction as its refunds were reconciled with them. */
export function listFacts({ payments }: Pick<ReconciledRefunds, 'payments'>): PaymentFacts[] {
  return payments.map(({ status, countedStatus, paymentMethod, amount, refundedNow }) => ({
    status,
    countedStatus,
    paymentMethod,
    amount,
    refundedAmount: refundedNow,
  }))
}
