import { z } from '@hono/zod-openapi'
import { parse, stringify } from 'lossless-json'
import type { Config } from '../config/config.ts'
import { DomainError, type FieldError } from '../errors.ts'
import { isPrintable, mapTexts } from '../gateway/storable.ts'
import type { GatewayCall } from '../gateway/types.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import { HIDDEN } from '../platform/crypto/masking.ts'

export const NOT_PRINTABLE = 'holds control characters'

/** What every member must be, whatever `REFUND_RECEIVER_CHECK` is: text that can be shown and stored. */
const ReceiverText = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(140, 'must be at most 140 characters')
  .refine(isPrintable, NOT_PRINTABLE)

/** The bank account for the refund of a QR payment (specification 4.3.2): members in wire order, sent trimmed. */
export const Receiver = z
  .strictObject({
    accountName: ReceiverText.openapi({
      description: 'The name of the account holder, as the bank knows it',
      example: 'NGUYEN VAN A',
    }),
    accountNumber: ReceiverText.openapi({
      description:
        'The account number at the bank. With `REFUND_RECEIVER_CHECK=strict` 4 to 34 letters and digits',
      example: '123456789',
    }),
    swiftCode: ReceiverText.openapi({
      description:
        'The bank. With `REFUND_RECEIVER_CHECK=strict` a SWIFT/BIC code of 8 or 11 characters',
      example: 'ASCBVNVX',
    }),
  })
  .openapi('Receiver')

export type Receiver = z.infer<typeof Receiver>

/** A receiver as it is stored and shown. Its masked account number does not pass the checks of a request. */
export const ShownReceiver = z.strictObject({
  accountName: z.string(),
  accountNumber: z.string(),
  swiftCode: z.string(),
})

const MASK = '••••'

export function maskReceiver(receiver: Receiver): Receiver {
  return { ...receiver, accountNumber: maskAccount(receiver.accountNumber) }
}

/** Shows the last four characters of an account number, and of a short one at most half. */
function maskAccount(accountNumber: string): string {
  const characters = [...accountNumber]
  const shown = Math.min(4, Math.floor(characters.length / 2))
  return `${MASK} ${characters.slice(characters.length - shown).join('')}`.trimEnd()
}

/** Masks an account number in every text and number of JSON that `src/gateway/storable.ts` wrote. */
function maskAccountIn(json: string, accountNumber: string): string {
  if (accountNumber === '') return json
  return stringify(mapTexts(parse(json), (text) => maskIn(text, accountNumber))) ?? json
}

/** Masks an account number in the gateway's message, and wherever its answer contains it. */
export function maskCall<T>(call: GatewayCall<T>, accountNumber = ''): GatewayCall<T> {
  const { outcome, record } = call
  const { received } = record
  const message = 'message' in outcome ? { message: maskIn(outcome.message, accountNumber) } : {}
  return {
    outcome: { ...outcome, ...message },
    record: received ? { ...record, received: maskAccountIn(received, accountNumber) } : record,
  }
}

/** Shorter texts are not account numbers, and may be part of any word. */
const MIN_ACCOUNT_NUMBER = 4
/** Longer numbers are found however they are grouped. A short one with gaps may be part of a date. */
const MIN_GROUPED = 6
const GAPS = /[\s.-]/g
const SPECIAL = /[\\^$.*+?()[\]{}|/-]/

/** What may be Base64. The gateway gets a receiver in this form only, and may send it back so. */
const BASE64 = /[\w+/-]{16,}={0,2}/g

/** Masks an account number in a text of the gateway, and hides Base64 that contains it. */
export function maskIn(text: string, accountNumber: string): string {
  if (accountNumber.length < MIN_ACCOUNT_NUMBER) return text
  const holdsIt = (run: string) => {
    const decoded = Buffer.from(run, 'base64').toString()
    return maskWords(decoded, accountNumber) !== decoded
  }
  // Base64 may begin after other characters of its alphabet, so every alignment is tried.
  const isHidden = (run: string) => [0, 1, 2, 3].some((start) => holdsIt(run.slice(start)))
  return maskWords(text, accountNumber).replace(BASE64, (run) => (isHidden(run) ? HIDDEN : run))
}

/** The replacement is a function, because patterns like $& in a replacement text would be expanded. */
function maskWords(text: string, accountNumber: string): string {
  const mask = () => maskAccount(accountNumber)
  const characters = [...accountNumber.replaceAll(GAPS, '')]
  if (characters.length < MIN_GROUPED) return text.replaceAll(accountNumber, mask)
  const grouped = characters.map((one) => one.replace(SPECIAL, '\\$&')).join('[\\s.-]?')
  return text.replaceAll(new RegExp(grouped, 'g'), mask)
}

type ReceiverColumn = 'receiver' | 'receiver_shown'

/** The place that an encrypted receiver is bound to. Events hold a copy of `receiver_shown` as it is. */
export function placeReceiver(column: ReceiverColumn, refundId: string): Place {
  return { column: `refunds.${column}`, row: refundId }
}

export function encryptReceiver(
  encryption: Encryption,
  receiver: Receiver,
  column: ReceiverColumn,
  refundId: string,
): Buffer {
  return encryption.encrypt(JSON.stringify(receiver), placeReceiver(column, refundId))
}

/**
 * @returns undefined when it was encrypted for another column or refund, or its data key is missing
 * @throws DomainError while its data key is still being read
 */
export function decryptReceiver(
  encryption: Pick<Encryption, 'decrypt'>,
  encrypted: Buffer,
  column: ReceiverColumn,
  refundId: string,
): Receiver | undefined {
  try {
    const text = encryption.decrypt(encrypted, placeReceiver(column, refundId))
    return ShownReceiver.parse(JSON.parse(text))
  } catch (error) {
    if (error instanceof DomainError) throw error
    return undefined
  }
}

const USUAL = [
  ['accountNumber', /^[0-9A-Za-z]{4,34}$/, 'an account number of 4 to 34 letters and digits'],
  ['swiftCode', /^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$/, 'a SWIFT/BIC code of 8 or 11 characters'],
] as const

/** Finds what looks wrong. The specification (4.3.2) defines no format, so the gateway may accept it even so. */
export function findReceiverHints(receiver: Receiver | undefined, verb = 'is not'): FieldError[] {
  if (!receiver) return []
  const unusual = USUAL.filter(([member, form]) => !form.test(receiver[member]))
  return unusual.map(([member, , name]) => ({
    path: `receiver.${member}`,
    message: `${verb} ${name}`,
  }))
}

/** Refuses what looks wrong if `REFUND_RECEIVER_CHECK` is `strict`. @throws DomainError `invalid_request` */
export function refuseReceiver(
  { REFUND_RECEIVER_CHECK: check }: Pick<Config, 'REFUND_RECEIVER_CHECK'>,
  receiver: Receiver | undefined,
): void {
  const errors = check === 'lenient' ? [] : findReceiverHints(receiver, 'must be')
  if (errors.length === 0) return
  const detail = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
  throw new DomainError('invalid_request', detail, { errors })
}
