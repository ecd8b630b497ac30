import { z } from '@hono/zod-openapi'
import type { Encryption } from '../platform/crypto/encryption.ts'

/** The bank account that receives the refund of a QR payment (specification 4.3.2), its members in wire order. */
export const Receiver = z
  .strictObject({
    accountName: z
      .string()
      .trim()
      .min(1, 'must not be empty')
      .max(140, 'must be at most 140 characters')
      .refine((name) => !/\p{Cc}/u.test(name) && name.isWellFormed(), 'holds control characters'),
    accountNumber: z
      .string()
      .regex(/^[0-9A-Za-z]{4,34}$/, 'must be 4 to 34 letters and digits')
      .openapi({ example: '123456789' }),
    swiftCode: z
      .string()
      .regex(
        /^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$/,
        'must be a SWIFT/BIC code of 8 or 11 characters',
      )
      .openapi({ example: 'ASCBVNVX' }),
  })
  .openapi('Receiver')

export type Receiver = z.infer<typeof Receiver>

/** Masks the account number, as receivers are shown. */
export function maskReceiver(receiver: Receiver): Receiver {
  return { ...receiver, accountNumber: maskAccount(receiver.accountNumber) }
}

/** Masks an account number: shows its last four characters, of a short one never more than half. */
export function maskAccount(accountNumber: string): string {
  const shown = Math.min(4, Math.floor(accountNumber.length / 2))
  return `•••• ${accountNumber.slice(-shown)}`
}

/** Encrypts a receiver for storage, bound to its refund. */
export function encryptReceiver(
  encryption: Encryption,
  receiver: Receiver,
  refundId: string,
): Buffer {
  return encryption.encrypt(JSON.stringify(receiver), refundId)
}

/**
 * Decrypts a stored receiver.
 * @returns undefined when it was encrypted for another refund or with another DATA_ENCRYPTION_KEY
 */
export function decryptReceiver(
  encryption: Encryption,
  encrypted: Buffer,
  refundId: string,
): Receiver | undefined {
  const text = decrypt(encryption, encrypted, refundId)
  if (text === undefined) return undefined
  const { accountName, accountNumber, swiftCode } = STORED.parse(JSON.parse(text))
  return { accountName, accountNumber, swiftCode }
}

function decrypt(encryption: Encryption, encrypted: Buffer, refundId: string): string | undefined {
  try {
    return encryption.decrypt(encrypted, refundId)
  } catch {
    return undefined
  }
}

/** Not `Receiver`: a masked account number does not have the form that a request requires. */
const STORED = z.object({
  accountName: z.string(),
  accountNumber: z.string(),
  swiftCode: z.string(),
})
