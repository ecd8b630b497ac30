import type { DiscrepancyKind } from '../discrepancies/kinds.ts'
import type { ExternalState } from './external-view.ts'
import type { Cause } from './lifecycle.ts'

/** A refund made at the gateway's portal, known from its notification, that still counts. */
export type ExternalRefund = {
  /** Of its row. */
  externalId: string
  /** Its request id: with payment and amount the key of its row. */
  id: string
  amount: string
  matched: boolean
  /** Its failure was notified as well: growth settles nothing about it, a person does. */
  contradicted: boolean
  /** Growth has shown another refund that was read from the same signed text: only one of the two can have happened. */
  isOtherReading: boolean
  /** It was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** Since it is known here (ms). */
  sinceSeenMs: number
}

/** A changed state of an external refund. */
export type ExternalChange = {
  /** Of its row. */
  externalId: string
  paymentId: string
  /** Null when it becomes known. */
  before: ExternalState | null
  after: ExternalState
  cause: Cause
}

/** A payment's row, locked until the commit; amounts are decimal strings. */
export type LockedPayment = {
  paymentId: string
  status: string
  paymentMethod: string
  missing: boolean
  amount: string
  refundedNow: string
  refundedAtFirst: string
  /** The part of it that is known to be refunds, ours or external. */
  explainedAtFirst: string
  /** The newest answer lists it, with values that can be read. */
  listed: boolean
  /** SUCCESS while the newest answer gives the payment a status that nobody knows; otherwise null. */
  countedStatus: string | null
  /** The amount that counts for refunds, while answers do not agree about another one; otherwise null. */
  countedAmount: string | null
  /** The refunded amount that counts for what is left, while answers show less that is not confirmed; otherwise null. */
  countedRefunded: string | null
  /** The part of it that the newest answers may lack already, because refunds of ours came back. */
  returning: string
  external: ExternalRefund[]
  /** Amounts of external refunds that a person decided never to have happened, or that another reading replaced. */
  released: string[]
  /** Change of the refunded amount that matches no refund; undefined without a snapshot. */
  unmatchedDelta: string | undefined
}

/** Two sides that disagree, for `discrepancies`. */
export type Disagreement = { kind: DiscrepancyKind; ours: string; theirs: string }

/** A disagreement about a payment, or about one refund of it. */
export type Finding = Disagreement & { paymentId: string; refundId?: string }
