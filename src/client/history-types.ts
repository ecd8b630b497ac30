// Types of the recorded history. Tests compare them with the schemas of the service's routes.

/** Deleted because it is older than the service's retention. */
export type Removed = { removed: true }

/**
 * One answer of the gateway: the payments it listed, and its other members. `received` is null, or holds `members`, or
 * the `text` of an answer that cannot be read, and `omittedBytes` if something was left out.
 */
export type Snapshot = { queriedAt: string; payments: unknown; received: unknown } | Removed

/** A notification of a refund. */
export type RefundNotification =
  | { receivedAt: string; deliveries: number; signature: string; code: string | null }
  | Removed

/** The evidence for a refund's status. */
export type RefundProof = {
  requestId: string
  /** The name of the API key, or of the person, that requested it. */
  requestedBy: string
  requestedAt: string
  reason: string | null
  attempts: {
    at: string
    bodyHmac: string
    outcome: string | null
    code: string | null
    message: string | null
    httpStatus: number | null
    durationMs: number | null
    /** What the gateway sent, in the form of `Snapshot`. */
    received: unknown
    snapshotBefore: Snapshot | null
  }[]
  transitions: {
    at: string
    from: string | null
    to: string
    cause: string
    notification: RefundNotification | null
    snapshot: Snapshot | null
  }[]
  /** Notifications that speak for or against the refund and changed no status by themselves. */
  notifications: { cause: string; notification: RefundNotification }[]
  /** Everything that speaks for its success or against it. */
  indications: {
    kind: 'answer' | 'notification' | 'growth' | 'decision'
    supports: 'succeeded' | 'failed' | 'neither'
    at: string
    text: string
  }[]
  evidence: string
  discrepancies: { at: string; kind: string; ours: string; theirs: string }[]
}

/** An entry in the history of a transaction. */
export type TimelineEntry =
  | {
      at: string
      type: 'ipn'
      kind: string
      /** The response code it carries. */
      code: string | null
      /** The gateway's words. */
      message: string | null
      amount: string | null
      paymentId: string | null
      /** Of the notification of a refund. */
      requestId: string | null
      deliveries: number
      lastReceivedAt: string
      signature: string
      /** Whether its hash was received with other values as well. */
      recut: boolean
      address: string
    }
  | {
      at: string
      type: 'query'
      outcome: string
      code: string | null
      message: string | null
      httpStatus: number | null
      durationMs: number
      bodyHmac: string
      /** The beginning of what was received beside the payments, the code and the message, as JSON. */
      received: string | null
    }
  | {
      at: string
      type: 'change'
      paymentId: string | null
      refundId: string | null
      field: string
      before: string | null
      after: string | null
      cause: string
    }
  | {
      at: string
      type: 'refund_attempt'
      refundId: string
      outcome: string | null
      code: string | null
      message: string | null
      httpStatus: number | null
      durationMs: number | null
      bodyHmac: string
      received: string | null
    }
  | {
      at: string
      type: 'discrepancy'
      kind: string
      paymentId: string | null
      refundId: string | null
      ours: string
      theirs: string
    }
