import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import type { AppliedPayments, SnapshotRef } from '../payments/odd-readings.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { Slots } from '../platform/concurrency/slots.ts'
import type { Attempt } from '../refunds/attempt.ts'
import type { ReconciledRefunds } from '../refunds/reconcile.ts'
import type { PaymentFacts, PaymentsSummary } from '../transactions/summarise-payments.ts'
import type { TransactionRow } from '../transactions/types.ts'
import type { NextStep, Progress, QueryEnd } from './schedule.ts'

export type SyncContext = Context & {
  /** Calls in flight, by merchant account: a claim waits for one, and holds it until its call has ended. */
  callSlots: Slots
  /** Answers being committed while their call slots are free again; it bounds those that wait in memory. */
  commitSlots: Slots
  unconfirmedQueries: { running: number }
  /** How long the last query of each merchant account took (ms). */
  queryMs: Map<string, number>
  answerCommits: Batcher<QueryAnswer, AnswerCommit>
}

/** A transaction that only this process may query until the lease ends. */
export type Claim = TransactionKey &
  Progress & {
    /** The fencing token: the commit that ends the claim writes only while the row has it. */
    leaseId: string
    /** Database time of the claim, and in any case later than the stored answer. */
    claimedAt: string
    /** `performance.now()` when the claim was returned. */
    knownAt: number
    /** How much of the lease is left (ms), at most. */
    leaseLeftMs: () => number
    /** The transaction has refunds, so its answer needs a commit of its own. */
    hasRefunds: boolean
  }

/** What notifications name of a transaction. `orderVerified`: a verified one has named it. */
export type TransactionNames = Pick<
  TransactionRow,
  'orderId' | 'merchantTxnId' | 'currency' | 'expectedAmount' | 'orderVerified'
>

/** What a commit reads of the row that it locks. */
export const LOCKED_COLUMNS = [
  ...(['state', 'final', 'paidAmount', 'refundedAmount', 'duplicatePayment'] as const),
  ...(['unappliedEntries', 'ipnCount', 'orderId', 'merchantTxnId', 'currency'] as const),
  ...(['expectedAmount', 'orderVerified'] as const),
] as const satisfies readonly (keyof TransactionRow)[]

export type LockedRow = Pick<TransactionRow, (typeof LOCKED_COLUMNS)[number]> & {
  /** An earlier answer showed a success. */
  wasPaid: boolean
  /** This commit completes the names. */
  isNamed?: boolean
  /** The query was sent later than the one whose answer was applied last. */
  newer: boolean
  /** When the query was sent (database time). */
  asOf: string
  /** The same, or earlier: what came during the call is not older, also where the database's clock has gone back in it. */
  firstAsOf: string
  /** Reserved for the query's row in `gateway_calls`. */
  callId: number
}

export type QueryAnswer = {
  claim: Claim
  call: GatewayCall<PaymentList>
  /** When the query was sent: ms after `claim.claimedAt`, by the monotonic clock. */
  sentAfterMs: number
}

/** `lost`: another worker has taken over the lease, and nothing was written. */
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
  /** With one the claim continues, until it is sent and its result is recorded. */
  attempt?: Attempt | undefined
  /** Recorded for the first time. */
  found: readonly RecordedDiscrepancy[]
}

/** `needs_own_commit`: the answer concerns refunds, or made the shared commit fail. */
export type AnswerCommit = CommittedAnswer | 'needs_own_commit'

const NOTHING = { payments: [], unreadable: [], rounded: [], json: '[]', omittedBytes: 0 }

/** What the gateway listed; nothing when the query failed. */
export function listAnswered({ outcome }: GatewayCall<PaymentList>): PaymentList {
  return outcome.kind === 'answered' ? outcome.value : NOTHING
}

/** A transaction in a commit that is about to be finished. The caller holds its row. */
export type CommitItem = {
  key: TransactionKey
  row: LockedRow
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

/** Without a summary nothing was applied. */
export type SummarisedItem = CommitItem & { summary: TransactionSummary | undefined }

type TransactionSummary = PaymentsSummary & {
  /** The newest answer has an entry that was not applied. */
  unapplied: boolean
  changed: boolean
  paid: boolean
  /** Its state or its sums differ from before, or a payment has moved away from it. */
  isRevised: boolean
  /** It is paid for the first time, or becomes final, in this commit. */
  turnsPaid: boolean
  turnsFinal: boolean
}
