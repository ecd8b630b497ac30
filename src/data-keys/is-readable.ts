import type { Encryption } from '../platform/crypto/encryption.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { decryptReceiver } from '../refunds/receiver.ts'
import { checkRefundFingerprint, type FingerprintedRefund } from '../refunds/request/idempotency.ts'
import { placeSecret } from '../webhooks/secrets.ts'

/** How much of what an earlier release wrote is tried. */
const SAMPLES = 20

type Refund = FingerprintedRefund & { refundId: string }

/**
 * Whether the keys open any of the newest values that an earlier release encrypted or fingerprinted; true if
 * there are none.
 */
export async function isReadable(tx: Tx, encryption: Encryption): Promise<boolean> {
  const secrets = await tx<{ id: string; secret: Buffer }[]>`
    select id, secret from webhook_endpoints order by created_at desc limit ${SAMPLES}`
  const refunds = await tx<Refund[]>`
    select refund_id as "refundId", payment_id as "paymentId", amount, reason, receiver_shown as "receiverShown",
      fingerprint as value, fingerprint_key_id as "keyId"
    from refunds order by requested_at desc limit ${SAMPLES}`
  const tried = [
    ...secrets.map(({ id, secret }) => opensSecret(encryption, id, secret)),
    ...refunds.map((one) => isKnown(encryption, one)),
  ]
  return tried.length === 0 || tried.includes(true)
}

function opensSecret(encryption: Encryption, id: string, secret: Buffer): boolean {
  try {
    return encryption.decrypt(secret, placeSecret(id)) !== ''
  } catch {
    return false
  }
}

function isKnown(encryption: Encryption, refund: Refund): boolean {
  const { receiverShown, refundId } = refund
  if (receiverShown) {
    return decryptReceiver(encryption, receiverShown, 'receiver_shown', refundId) !== undefined
  }
  // Any other request than its own: `different` proves that the key is there.
  return checkRefundFingerprint(encryption, '', refund) === 'different'
}
