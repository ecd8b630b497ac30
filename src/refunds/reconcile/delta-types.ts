import type { ExternalRefund } from '../types.ts'

/** A refund of ours, as matching sees it. Amounts are decimal strings. */
export type OwnRefund = {
  id: string
  amount: string
  /**
   * `confirmed`: a notification or a person confirmed its success; `inferred`: its success was concluded from growth,
   * and it stays reserved; `open`: sent, outcome unknown; `failure_notified`: sent, and notified as failed; `failed`:
   * failed after bytes had left; `expired`: failed because it was not sent or approved in time, although a row that
   * a restore has lost may have been sent; `contradicted`: a person has to decide; `unsent`: not sent by this row, but perhaps by
   * one that was lost.
   */
  evidence:
    | 'confirmed'
    | 'inferred'
    | 'open'
    | 'failure_notified'
    | 'failed'
    | 'expired'
    | 'contradicted'
    | 'unsent'
  /** Its amount is already matched. */
  matched: boolean
  /** It was sent before the snapshot's query: only then can the snapshot show it. */
  sentBefore: boolean
  /** The refunded amount has grown by its amount since it was first sent. */
  hasGrown: boolean
  /** It may have, because as much of it may have come back since. */
  mayHaveGrown: boolean
  /** It was never sent from here, and its success was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** The unmatched growth that a person had before them when they decided about it. */
  decidedGrowth: string | null
}

export type RefundedDelta = {
  /** `refundedAmount` when the payment was first seen, and the part of it that refunds explain. */
  atFirst: string
  explainedAtFirst: string
  /** `refundedAmount` in the current snapshot. */
  now: string
  /** Both oldest first. */
  own: readonly OwnRefund[]
  external: readonly ExternalRefund[]
  /**
   * Amounts that do not count, of external refunds and of refunds that came back by people's word: the delta may be theirs
   * all the same.
   */
  released: readonly string[]
  /** An external refund of the payment has just appeared or changed: what was inferred is judged again. */
  externalChanged: boolean
}

/** The result of matching; refunds of ours by their ids. */
export type DeltaMatch = {
  /** Confirmed refunds whose amounts are part of the delta. */
  matchedOwn: string[]
  matchedExternal: ExternalRefund[]
  /** Refunds that are part of what was refunded when the payment was first seen. */
  firstSightOwn: string[]
  firstSightExternal: ExternalRefund[]
  /** The open refund that must have happened, because the unmatched delta equals its amount. It stays reserved. */
  inferred: string | undefined
  /** Refunds inferred earlier from a delta that may belong to another refund. */
  doubtful: string[]
  /** Refunds that failed after bytes had left, and whose amount the unmatched delta equals. */
  contradicted: string[]
  /**
   * The part of the delta that matches no known refund, `0` for none; negative when the refunded amount fell below what
   * is matched.
   */
  unmatchedDelta: string
}
