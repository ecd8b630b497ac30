import type { RefundSettings } from '../../src/refunds/transitions.ts'
import type { RefundRow } from '../../src/refunds/types.ts'

/** The row of a refund sent once and not answered, except for `facts`. */
export function makeRefundRow(facts: Partial<RefundRow> = {}): RefundRow {
  return {
    merchantCode: 'M',
    transactionId: 'T',
    refundId: '00000000-0000-4000-8000-000000000001',
    paymentId: 'P',
    amount: '30',
    receiver: null,
    status: 'unknown',
    attempts: 1,
    firstSentAt: '2026-01-01',
    lastSentAt: '2026-01-01',
    sentAmidGrowth: false,
    unanswered: true,
    refundedBefore: null,
    refusedCode: null,
    refusedAt: null,
    failureCode: null,
    failureNotifiedAt: null,
    gatewayRefundId: null,
    known: false,
    inferred: false,
    matched: false,
    successNotifiedAt: null,
    notifiedBeforeFirst: false,
    inFirstSight: false,
    review: null,
    failureSource: null,
    failureReason: null,
    failureMessage: null,
    polls: 1,
    sinceRequestedMs: 0,
    sinceFirstSentMs: 0,
    sinceSentMs: 0,
    sinceRefusedMs: null,
    dueInMs: 0,
    refusedToSnapshotMs: null,
    sentBeforeSnapshot: true,
    requestedBeforeSnapshot: true,
    failureBeforeSnapshot: false,
    ...facts,
  }
}

export const REFUND_SETTINGS: RefundSettings = {
  REFUND_BACKOFF_MS: 2_000,
  REFUND_BACKOFF_MAX_MS: 900_000,
  REFUND_RESOLVE_FOR_MS: 259_200_000,
  REFUND_CONFIRM_FAILED_MS: 600_000,
  REFUND_RESEND_AFTER_MS: 30_000,
  REFUND_RESEND_FOR_MS: 3_600_000,
  GATEWAY_REFUND_FINAL_CODES: ['31', '32', '33', '34', '37'],
  GATEWAY_REFUND_DEDUPES: true,
  REFUNDS_ENABLED: true,
}
