import { z } from '@hono/zod-openapi'
import type { Sealer } from '../seal.ts'

/** Where a refund of a QR payment goes (specification 4.3.2): the members in the order of the wire. */
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

export function maskReceiver(receiver: Receiver): Receiver {
  return { ...receiver, accountNumber: maskAccount(receiver.accountNumber) }
}

/** Of an account number the last four characters are shown, of a short one never more than half. */
export function maskAccount(accountNumber: string): string {
  const shown = Math.min(4, Math.floor(accountNumber.length / 2))
  return `•••• ${accountNumber.slice(-shown)}`
}

/** A receiver at rest: encrypted, and bound to its refund. */
export function sealReceiver(sealer: Sealer, receiver: Receiver, refundId: string): Buffer {
  return sealer.seal(JSON.stringify(receiver), refundId)
}

/** @returns undefined when the bytes were not sealed for this refund with the key of the settings */
export function openReceiver(
  sealer: Sealer,
  sealed: Buffer,
  refundId: string,
): Receiver | undefined {
  const text = unseal(sealer, sealed, refundId)
  if (text === undefined) return undefined
  const { accountName, accountNumber, swiftCode } = OPENED.parse(JSON.parse(text))
  return { accountName, accountNumber, swiftCode }
}

function unseal(sealer: Sealer, sealed: Buffer, refundId: string): string | undefined {
  try {
    return sealer.open(sealed, refundId)
  } catch {
    return undefined
  }
}

const OPENED = z.object({
  accountName: z.string(),
  accountNumber: z.string(),
  swiftCode: z.string(),
})
