import type { TransactionKey } from '../db/transaction-key.ts'
import type { GatewayCall, PaymentList } from '../gateway/types.ts'
import type { Resume } from '../platform/telemetry/tracing.ts'
import type { Attempt } from '../refunds/attempt.ts'
import type { NextStep, QueryEnd } from './schedule.ts'

/** A transaction that only this process may query until the lease ends. */
export type Claim = TransactionKey & {
  /** The fencing token: the commit that ends the claim writes only while the row has it. */
  leaseId: string
  /** Database time of the claim, and in any case later than the stored answer. */
  claimedAt: string
  /** `performance.now()` when the claim was returned. */
  knownAt: number
  /** Failed queries in a row before this one. */
  attempts: number
  /** Open answers in a row before this one. */
  polls: number
  /** Since the last notification or request to sync (ms). */
  sinceRequestedMs: number
  /** Neither a notification nor an answer of the gateway has named the transaction. */
  unconfirmed: boolean
  /** The transaction has refunds, so its answer needs a commit of its own. */
  hasRefunds: boolean
}

/** What notifications name of a transaction. */
export type TransactionNames = {
  orderId: string | null
  merchantTxnId: string | null
  currency: string | null
  /** The order's amount (decimal string). */
  expectedAmount: string | null
  /** A verified notification has named it. */
  orderVerified: boolean
}

/** A claimed transaction's row, locked until the commit. */
export type ClaimedRow = TransactionNames & {
  state: string
  final: boolean
  /** An earlier answer showed a success. */
  wasPaid: boolean
  paidAmount: string
  refundedAmount: string
  duplicatePayment: boolean
  unappliedEntries: boolean
  /** The names differ from those in the database: they are completed by this commit. */
  isNamed?: boolean
  /** Notifications received. */
  ipnCount: number
  /** The query was sent later than the one whose answer was applied last. */
  newer: boolean
  /** When the query was sent (database time). */
  asOf: string
  /** Reserved for the record of the query: its id in `gateway_calls`. */
  callId: number
}

/** The outcome of a claim's query. */
export type QueryAnswer = {
  claim: Claim
  call: GatewayCall<PaymentList>
  /** When the query was sent: ms after `claim.claimedAt`, by the monotonic clock. */
  sentAfterMs: number
  /** Runs code in the claim's own trace: a shared commit may run in another one. */
  resume?: Resume | undefined
}

/** How a claim ended; `lost`: another worker has taken over the lease, and nothing was written. */
export type ClaimEnd = {
  next: NextStep['kind'] | 'lost'
  lastError: string | null
  dueAgain: boolean
  /** The transaction shares its order with another one: `checkOrder` has to run. */
  orderCheckDue: boolean
}

/** A committed answer. With an `attempt` the claim continues, until the attempt is sent and its result is recorded. */
export type CommittedAnswer = { end: ClaimEnd; queryEnd: QueryEnd; attempt?: Attempt | undefined }

/** `needs_own_commit`: the answer concerns refunds, or the shared commit failed because of one answer. */
export type AnswerCommit = CommittedAnswer | 'needs_own_commit'

export const LOST: ClaimEnd = {
  next: 'lost',
  lastError: null,
  dueAgain: false,
  orderCheckDue: false,
}
