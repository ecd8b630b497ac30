import type { externalRefunds } from '../db/schema.ts'
import type { DiscrepancyKind } from '../discrepancies/kinds.ts'
import type { RefundDetails } from '../gateway/stored-body.ts'
import type { SnapshotRef } from '../payments/odd-readings.ts'
import type { ExternalState } from './external-view.ts'
import type { Cause, RefundDraft } from './lifecycle.ts'

/**
 * The row of a refund made at the gateway's portal, which a notification makes known or a person enters. Its request
 * id, payment and amount are its key.
 */
export type ExternalRow = Omit<typeof externalRefunds.$inferSelect, 'merchantCode'> & {
  /** Growth has shown another refund that was read from the same signed text: only one of the two can have happened. */
  isOtherReading: boolean
  /** It was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** Since it is known here (ms). */
  sinceSeenMs: number
}

/** A refund made at the gateway's portal that still counts, as matching sees it. */
export type ExternalRefund = Pick<
  ExternalRow,
  'id' | 'amount' | 'matched' | 'isOtherReading' | 'notifiedBeforeFirst'
> & {
  /** Its failure was notified as well: growth settles nothing about it, a person does. */
  contradicted: boolean
}

/** As it was read, if it was known, and as it will be saved. */
export type ExternalDraft = {
  before: ExternalRow | undefined
  now: ExternalRow
  changes: ExternalChange[]
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
  /** The amount that counts, while answers do not agree about another one; otherwise null. */
  countedAmount: string | null
  /** The refunded amount that counts, while answers show less that is not confirmed; otherwise null. */
  countedRefunded: string | null
  /** The part of it that the newest answers may lack already, because refunds of ours came back. */
  returning: string
  external: ExternalRefund[]
  /**
   * Of verified successes that are no documented reading, or whose amount cannot be read (`0`), and of no refund of ours:
   * nothing is reserved for them.
   */
  unreserved: string[]
  /**
   * What growth may be all the same: these, and external refunds that a person decided never to have happened, or that
   * another reading replaced.
   */
  released: string[]
  /** Change of the refunded amount that matches no refund; undefined without a snapshot. */
  unmatchedDelta: string | undefined
}

export type Disagreement = { kind: DiscrepancyKind; ours: string; theirs: string }

/** A disagreement about a payment, or about one refund of it. */
export type Finding = Disagreement & { paymentId: string; refundId?: string }

/** What of a notification decides how much it counts. */
export type WeighedNotification = {
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  /** Its place among the readings of its text: the first is trusted. */
  reading: number
}

/** A refund notification that is not handled yet. */
export type RefundNotification = WeighedNotification & {
  id: number
  /** In the form that gateways of this family document. */
  documented: boolean
  /** Another reading of its text with the same refund, payment and amount, and a result, was handled before. */
  handledBefore: boolean
  /** Growth has shown another refund that was read from its text. */
  isOtherShown: boolean
  /** When the failure of the same refund was notified first; null when it was not. */
  failedAt: string | null
  receivedAt: string
  /** It was received before the current snapshot was asked for, as far as is known: nothing was since. */
  beforeSnapshot: boolean
  /** It was received before its payment was first seen. */
  beforeFirst: boolean
  /** As it is stored, and stays stored once it is handled; null for one that is too long to be of use. */
  body: string | null
  /** Of the refund that it makes known, if it does. */
  externalId: string
  /** The fee, the gateway's words and its reference, as far as they are believed. */
  details: Partial<RefundDetails>
}

/** An amount that can be refunded again, because answers show that the refund came back. */
export type FreedAmount = { refundId: string; paymentId: string; amount: string; cause: Cause }

/**
 * All that is known of the refunds of a transaction, locked until the commit. Rules change the drafts and payments;
 * what they leave is saved once.
 */
export type LockedRefunds = {
  drafts: RefundDraft[]
  payments: LockedPayment[]
  external: ExternalDraft[]
  notifications: readonly RefundNotification[]
  freed: FreedAmount[]
}

export type Snapshot = SnapshotRef & {
  /** It differs from the one before. */
  changed: boolean
}
