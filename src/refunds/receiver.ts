import { z } from '@hono/zod-openapi'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'

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

/** The columns that hold a receiver. */
type ReceiverColumn = 'receiver' | 'receiver_shown'

/** Where a receiver of a refund is stored. Events hold a copy of `receiver_shown` as it is. */
export function placeReceiver(column: ReceiverColumn, refundId: string): Place {
  return { column: `refunds.${column}`, row: refundId }
}

/** Encrypts a receiver for storage, bound to its column and refund. */
export function encryptReceiver(
  encryption: Encryption,
  receiver: Receiver,
  column: ReceiverColumn,
  refundId: string,
): Buffer {
  return encryption.encrypt(JSON.stringify(receiver), placeReceiver(column, refundId))
}

/**
 * Decrypts a stored receiver.
 * @returns undefined when it was encrypted for another column or refund, or its data key is not there
 */
export function decryptReceiver(
  encryption: Pick<Encryption, 'decrypt'>,
  encrypted: Buffer,
  column: ReceiverColumn,
  refundId: string,
): Receiver | undefined {
  const text = decrypt(encryption, encrypted, placeReceiver(column, refundId))
  if (text === undefined) return undefined
  const { accountName, accountNumber, swiftCode } = STORED.parse(JSON.parse(text))
  return { accountName, accountNumber, swiftCode }
}

function decrypt(
  encryption: Pick<Encryption, 'decrypt'>,
  encrypted: Buffer,
  place: Place,
): string | undefined {
  try {
    return encryption.decrypt(encrypted, place)
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
