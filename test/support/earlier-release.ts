import { createCipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { Big } from 'big.js'
import type { TestDatabase } from './database.ts'

/** How release 0.1.0 derived a key from `DATA_ENCRYPTION_KEY`. */
function derive(root: string, purpose: string): Buffer {
  const key = Buffer.from(root, 'base64')
  return Buffer.from(hkdfSync('sha256', key, '', `ipn-processor ${purpose}`, 32))
}

/** How release 0.1.0 encrypted: nonce, tag, text, with the row as its context. */
export function encryptEarlier(root: string, text: string, context: string): Buffer {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', derive(root, 'seal'), nonce)
  cipher.setAAD(Buffer.from(context))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body])
}

type Written = {
  refundId: string
  paymentId: string
  /** As in the request. */
  amount?: string
  reason?: string
  receiver?: { accountName: string; accountNumber: string; swiftCode: string }
}

/** Rewrites a refund's encrypted columns as release 0.1.0 wrote them, and forgets the data keys. */
export async function rewriteAsEarlier(
  { sql }: TestDatabase,
  root: string,
  { refundId, paymentId, amount, reason, receiver }: Written,
): Promise<void> {
  const value = amount === undefined ? null : new Big(amount).toFixed()
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  const fingerprint = createHmac('sha256', derive(root, 'fingerprint'))
    .update(JSON.stringify([paymentId, value, to ?? null, reason ?? null]))
    .digest()
  const encrypt = (one: object | undefined) =>
    one ? encryptEarlier(root, JSON.stringify(one), refundId) : null
  const masked = receiver && {
    ...receiver,
    accountNumber: `•••• ${receiver.accountNumber.slice(-4)}`,
  }
  await sql`
    update refunds set fingerprint = ${fingerprint}, fingerprint_key_id = null,
      receiver = ${encrypt(receiver)}, receiver_shown = ${encrypt(masked)}
    where refund_id = ${refundId}`
  await sql`delete from data_keys`
}
