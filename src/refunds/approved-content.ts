import { shortenAmount } from '../money.ts'
import type { Encryption, FingerprintCheck } from '../platform/crypto/encryption.ts'
import type { Receiver } from './receiver.ts'
import type { RefundRow } from './types.ts'

/** What of a refund is approved: whatever decides how much money goes where, and for whom. */
export type ApprovedContent = Pick<
  RefundRow,
  'merchantCode' | 'refundId' | 'paymentId' | 'amount' | 'reason' | 'onBehalfOf'
>

/** Formats what is approved, for a fingerprint. */
export function formatApproved(
  { merchantCode, refundId, paymentId, amount, reason, onBehalfOf }: ApprovedContent,
  receiver: Receiver | undefined,
): string {
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  const value = shortenAmount(amount)
  return JSON.stringify([
    ...['approved', merchantCode, refundId, paymentId],
    ...[value, to ?? null, reason, onBehalfOf],
  ])
}

/** Compares a refund with what was approved; one that needs no approval is `same`. */
export function checkApproved(
  encryption: Encryption,
  row: RefundRow,
  receiver: Receiver | undefined,
): FingerprintCheck {
  if (!row.needsApproval) return 'same'
  const { approvedFingerprint: value, approvedFingerprintKeyId: keyId } = row
  if (value === null || keyId === null) return 'different'
  return encryption.checkFingerprint(formatApproved(row, receiver), { value, keyId })
}
