import type { ExternalRefund } from '../types.ts'

/** A refund of ours, as matching sees it. Amounts are decimal strings. */
export type OwnRefund = {
  id: string
  amount: string
  /**
   * `confirmed`: a notification or a person confirmed its success; `inferred`: its success was concluded from
   * an earlier delta; `none`: sent, outcome unknown; `failure_notified`: sent, and notified as failed;
   * `refused`: failed by the gateway's answer alone; `contradicted`: a person has to decide; `unsent`: not sent
   * by this row, but perhaps by one that was lost.
   */
  evidence:
    | 'confirmed'
    | 'inferred'
    | 'none'
    | 'failure_notified'
    | 'refused'
    | 'contradicted'
    | 'unsent'
  /** Its amount is already matched. */
  matched: boolean
  /** It was sent before the snapshot's query: only then can the snapshot show it. */
  sentBefore: boolean
  /** The payment had an unmatched delta when it was sent, which could be mistaken for its own. */
  sentAmidGrowth: boolean
  /** An attempt of it is on record. Without one it can only have been sent by a row that was lost. */
  sent: boolean
  /** It was never sent from here, and its success was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
}

export type RefundedDelta = {
  /** `refundedAmount` when the payment was first seen, and the part of it that refunds explain. */
  atFirst: string
  explainedAtFirst: string
  /** `refundedAmount` in the current snapshot. */
  now: string
  /** The answer before showed less than what refunds explain. */
  fellBefore: boolean
  /** The part of such a fall that is explained: refunds of ours came back, which this answer shows. */
  returning: string
  /** Both oldest first. */
  own: readonly OwnRefund[]
  external: readonly ExternalRefund[]
  /** Amounts of external refunds whose success and failure were both notified: the delta may be theirs. */
  released: readonly string[]
  /** A refund of the payment has contradictory evidence: nothing is inferred until a person has decided. */
  underReview: boolean
}

/** The result of matching; refunds of ours by their ids. */
export type DeltaMatch = {
  /** Confirmed refunds whose amounts are part of the delta. */
  matchedOwn: string[]
  matchedExternal: ExternalRefund[]
  /** Refunds that are part of what was refunded when the payment was first seen. */
  firstSightOwn: string[]
  firstSightExternal: ExternalRefund[]
  /** Open refunds that must have happened, because their sum equals the remaining delta. */
  inferred: string[]
  /** Refunds inferred earlier whose delta is gone or may belong to another refund. */
  doubtful: string[]
  /** Refunds failed by the gateway's answer whose amount the remaining delta equals. */
  contradicted: string[]
  /**
   * The part of the delta that matches no refund, `0` for none; negative when the refunded amount fell below what
   * is matched.
   */
  unmatchedDelta: string
  /** The refunded amount is below what refunds explain. */
  fell: boolean
}
