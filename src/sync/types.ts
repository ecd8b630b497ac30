import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import type { AppliedPayments, SnapshotRef } from '../payments/compare-payments.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { Slots } from '../platform/concurrency/slots.ts'
import type { Attempt } from '../refunds/attempt.ts'
import type { ReconciledRefunds } from '../refunds/reconcile.ts'
import type { PaymentFacts, PaymentsSummary } from '../transactions/summarise-payments.ts'
import type { TransactionRow } from '../transactions/types.ts'
import type { NextStep, Progress, QueryEnd } from './schedule.ts'

export type SyncContext = Context & {
  /** Calls in flight, by merchant account. A claim waits for a slot, and holds it until its call has ended. */
  callSlots: Slots
  /** Bounds the answers that wait for their commit in memory after they have given back their call slots. */
  commitSlots: Slots
  unconfirmedQueries: { running: number }
  /** How long the last query of each merchant account took (ms). */
  queryMs: Map<string, number>
  answerCommits: Batcher<QueryAnswer, AnswerCommit>
}

/** A transaction that only this process may query until the lease ends. */
export type Claim = TransactionKey &
  Progress & {
    /** The fencing token: the commit that ends the claim writes nothing unless the row still has it. */
    leaseId: string
    /** When the transaction was claimed (database time), in any case later than the stored answer. */
    claimedAt: string
    /** `performance.now()` when the claim was returned. */
    knownAt: number
    /** At most how much of the lease is left (ms). */
    leaseLeftMs: () => number
    /** The transaction has refunds, so its answer needs a commit of its own. */
    hasRefunds: boolean
  }

/** What notifications name of a transaction, and whether a verified one has done so. */
export const NAMES = [
  ...(['orderId', 'merchantTxnId', 'currency', 'expectedAmount', 'orderVerified'] as const),
] as const
export type TransactionNames = Pick<TransactionRow, (typeof NAMES)[number]>

export const LOCKED_COLUMNS = [
  ...(['state', 'final', 'paidAmount', 'refundedAmount', 'duplicatePayment'] as const),
  ...(['unappliedEntries', 'ipnCount'] as const),
  ...NAMES,
] as const

export type LockedRow = Pick<TransactionRow, (typeof LOCKED_COLUMNS)[number]> & {
  wasPaid: boolean
  /** This commit completes the names. */
  isNamed?: boolean
  /** The query was sent after the one whose answer was applied last. */
  newer: boolean
  /** When the query was sent (database time). */
  asOf: string
  /** The same, or earlier if the database's clock went back during the call, so that nothing received in it is older. */
  firstAsOf: string
  /** The reserved id of the query's row in `gateway_calls`. */
  callId: number
}

export type QueryAnswer = {
  claim: Claim
  call: GatewayCall<PaymentList>
  /** How long after `claim.claimedAt` the query was sent (ms, by the monotonic clock). */
  sentAfterMs: number
}

/** `lost`: another worker has taken over the lease, so nothing was written. */
export type ClaimEnd = {
  next: NextStep['kind'] | 'lost'
  lastError: string | null
  dueAgain: boolean
  /** The transaction shares its order with another one: `checkOrder` has to run. */
  orderCheckDue: boolean
}

export const LOST = {
  next: 'lost',
  lastError: null,
  dueAgain: false,
  orderCheckDue: false,
} as const

export type CommittedAnswer = {
  end: ClaimEnd
  queryEnd: QueryEnd
  /** If set, the claim continues until the attempt is sent and its result is recorded. */
  attempt?: Attempt | undefined
  /** Recorded for the first time. */
  found: readonly RecordedDiscrepancy[]
}

/** `needs_own_commit`: the answer concerns refunds, or the shared commit failed. */
export type AnswerCommit = CommittedAnswer | 'needs_own_commit'

const NOTHING_LISTED = { payments: [], unreadable: [], rounded: [], json: '[]', omittedBytes: 0 }

export function listAnswered({ outcome }: GatewayCall<PaymentList>): PaymentList {
  return outcome.kind === 'answered' ? outcome.value : NOTHING_LISTED
}

/** A transaction in a commit that is about to be finished, which holds its row. */
export type CommitItem = {
  key: TransactionKey
  row: LockedRow
  payments: readonly PaymentFacts[]
  /** The gateway's answer and its snapshot, if the commit applies one. */
  applied?: AppliedPayments | undefined
  snapshot?: SnapshotRef | undefined
  /** Unset if the transaction has nothing to do with refunds. */
  refunds?: ReconciledRefunds | undefined
  /** Payments that this commit has moved here from another transaction. */
  moved?: readonly string[]
  /** Set if payments have moved away. */
  movedAway?: { refundsOpen: boolean }
  /** The claim that ends with this commit; unset if a refund is sent next, or another worker holds the lease. */
  ended?: { claim: Claim; end: QueryEnd } | undefined
}

/** `summary` is undefined if nothing was applied. */
export type SummarisedItem = CommitItem & { summary: TransactionSummary | undefined }

type TransactionSummary = PaymentsSummary & {
  unapplied: boolean
  changed: boolean
  paid: boolean
  /** Its state, sums or names have changed, or a payment has moved away. */
  isRevised: boolean
  /** It is paid for the first time, or becomes final, with this commit. */
  turnsPaid: boolean
  turnsFinal: boolean
}
