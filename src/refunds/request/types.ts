import type { NewEvent } from '../../events/record-events.ts'
import type { Fingerprint } from '../../platform/crypto/encryption.ts'
import type { Receiver } from '../receiver.ts'
import type { ShownRefund } from '../view.ts'

/** The parameters of a refund request, parsed. */
export type RequestParams = {
  /** Decimal string; undefined for all that is left to refund. */
  amount: string | undefined
  receiver: Receiver | undefined
  reason: string | undefined
  /** The person for whom the caller asks. */
  onBehalfOf?: string | undefined
  /** The caller's own pairs. */
  metadata?: Readonly<Record<string, string>> | undefined
  /**
   * What the caller decided on: from `formatTransactionVersion`, or for a surplus refund from `describeSurplus`. The refund is
   * refused if anything visible has changed since. It is no part of the request that an idempotency key stands for.
   */
  expectedVersion?: string | undefined
}

/** A refund request, parsed. */
export type RefundParams = RequestParams & { paymentId: string }

/** A refund about to be stored. `refundId` is also the request id on the wire. */
export type RefundIntent = {
  refundId: string
  idempotencyKey: string
  /** Of the parameters. */
  fingerprint: Fingerprint
}

/** The amounts of a refund that would be, or was, stored; decimal strings. */
export type RefundAmounts = { amount: string; refundable: string; currency: string | null }

/** A refund whose intent was stored, with the events to record after that of the refund. */
export type StoredIntent = RefundAmounts & { stored: ShownRefund; more: readonly NewEvent[] }

/** `stored` is the new refund; a replayed refund has to be read. */
export type RequestedRefund = { refundId: string; merchantCode: string } & (
  | { replayed: true }
  | { replayed: false; stored: ShownRefund }
)
