import type { externalRefunds } from '../db/schema.ts'
import type { DiscrepancyKind } from '../discrepancies/kinds.ts'
import type { RefundDetails } from '../gateway/stored-body.ts'
import type { SnapshotRef } from '../payments/compare-payments.ts'
import type { ExternalState } from './external-view.ts'
import type { Cause, RefundDraft } from './lifecycle.ts'

/** A refund made at the gateway's portal, notified or entered. Request id, payment and amount are its key. */
export type ExternalRow = Omit<typeof externalRefunds.$inferSelect, 'merchantCode'> & {
  /** Growth has shown another refund read from the same signed text. Only one of the two can have happened. */
  isOtherReading: boolean
  /** It was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** How long it has been known here (ms). */
  sinceSeenMs: number
}

/** An external refund that still counts, as matching sees it. */
export type ExternalRefund = Pick<
  ExternalRow,
  'id' | 'amount' | 'matched' | 'isOtherReading' | 'notifiedBeforeFirst'
> & {
  /** Its failure was notified as well, so growth does not settle it; a person does. */
  contradicted: boolean
}

/** An external refund as it was read, if it was known, and as it will be saved. */
export type ExternalDraft = {
  before: ExternalRow | undefined
  now: ExternalRow
  changes: ExternalChange[]
}

export type ExternalChange = {
  externalId: string
  paymentId: string
  /** Null when the refund becomes known. */
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
  /** The part of `refundedAtFirst` that is known to be refunds, ours or external. */
  explainedAtFirst: string
  /** The newest answer lists it with readable values. */
  listed: boolean
  /** `SUCCESS` while the newest answer gives the payment an unrecognised status; otherwise null. */
  countedStatus: string | null
  /** The amount that counts while answers do not agree on another one; otherwise null. */
  countedAmount: string | null
  /** The refunded amount that counts while a lower one is not confirmed; otherwise null. */
  countedRefunded: string | null
  /** The part of the refunded amount that the newest answers may lack already, because refunds of ours came back. */
  returning: string
  external: ExternalRefund[]
  /** Verified successes that reserve nothing: undocumented readings, and amounts that cannot be read (`0`). */
  unreserved: string[]
  /** Amounts that growth may show all the same: these, and of external refunds that were denied or replaced. */
  released: string[]
  /** The change of the refunded amount that matches no refund; undefined without a snapshot. */
  unmatchedDelta: string | undefined
}

export type Disagreement = { kind: DiscrepancyKind; ours: string; theirs: string }

export type Finding = Disagreement & { paymentId: string; refundId?: string }

/** The part of a notification that decides what it proves. */
export type WeighedNotification = {
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  /** Its place among the readings of its text. Beyond the first, it proves something only if `weigh` finds it `same`. */
  reading: number
}

/** A refund notification that is not handled yet. */
export type RefundNotification = WeighedNotification & {
  id: number
  /** It has the documented form. */
  documented: boolean
  /** Another reading of its text with the same refund, payment and amount, and with a result, was handled before. */
  handledBefore: boolean
  /** Growth has shown another refund that was read from its text. */
  isOtherShown: boolean
  /** When a failure of the same refund was first notified; null if none was. */
  failedAt: string | null
  receivedAt: string
  /** It was received before the current snapshot was asked for, as far as is known: nothing was since. */
  beforeSnapshot: boolean
  /** It was received before its payment was first seen. */
  beforeFirst: boolean
  /** The stored body, which stays stored once it is handled; null if it is too long to be of use. */
  body: string | null
  /** The id of the external refund that it may make known. */
  externalId: string
  /** The gateway's fee, message and reference, as far as they are believed. */
  details: Partial<RefundDetails>
}

/** An amount that can be refunded again, because the refund came back. */
type FreedAmount = { refundId: string; paymentId: string; amount: string; cause: Cause }

/** All that is known of a transaction's refunds, locked until the commit. Rules change it, and it is saved once. */
export type LockedRefunds = {
  drafts: RefundDraft[]
  payments: LockedPayment[]
  external: ExternalDraft[]
  notifications: readonly RefundNotification[]
  freed: FreedAmount[]
}

export type Snapshot = SnapshotRef & {
  /** It differs from the previous one. */
  changed: boolean
}
