import type { Config } from '../../config/config.ts'
import { DomainError, type FieldError } from '../../errors.ts'
import type { Receiver } from '../receiver.ts'

/** The usual form of the members that have one. */
const USUAL = [
  {
    member: 'accountNumber',
    form: /^[0-9A-Za-z]{4,34}$/,
    name: 'an account number of 4 to 34 letters and digits',
  },
  {
    member: 'swiftCode',
    form: /^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$/,
    name: 'a SWIFT/BIC code of 8 or 11 characters',
  },
] as const

/**
 * Finds what is unusual about a receiver. The specification (4.3.2) knows three texts without a form, so the gateway
 * may accept it even so.
 */
export function findReceiverHints(receiver: Receiver | undefined): FieldError[] {
  return findUnusual(receiver).map(({ path, name }) => ({ path, message: `is not ${name}` }))
}

/**
 * Refuses an unusual receiver with `REFUND_RECEIVER_CHECK=strict`.
 * @throws DomainError `invalid_request`
 */
export function refuseReceiver(
  { REFUND_RECEIVER_CHECK: check }: Pick<Config, 'REFUND_RECEIVER_CHECK'>,
  receiver: Receiver | undefined,
): void {
  const unusual = findUnusual(receiver)
  if (check === 'lenient' || unusual.length === 0) return
  const errors = unusual.map(({ path, name }) => ({ path, message: `must be ${name}` }))
  const detail = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
  throw new DomainError('invalid_request', detail, { errors })
}

function findUnusual(receiver: Receiver | undefined): { path: string; name: string }[] {
  if (!receiver) return []
  return USUAL.filter(({ member, form }) => !form.test(receiver[member])).map(
    ({ member, name }) => ({ path: `receiver.${member}`, name }),
  )
}
