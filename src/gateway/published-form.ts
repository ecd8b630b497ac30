import type { Notification } from './read-notification.ts'

const SHARED = ['Command', 'MerchantCode', 'OrderID', 'TransactionID', 'Amount', 'Version'] as const
const RESULT = ['ResponseCode', 'ResponseMsg'] as const

/** The signed members of a notification as gateways of this family publish them, without prefix. */
const MEMBERS: Record<Notification['kind'], ReadonlySet<string>> = {
  payment: new Set([
    ...SHARED,
    ...RESULT,
    ...['Currency', 'Locale', 'MerchantTxnID', 'OrderInfo', 'PayToken', 'TransAmount', 'ExtData'],
  ]),
  refund: new Set([...SHARED, ...RESULT, 'PaymentID', 'RequestID', 'Fee']),
}

/** Whether gateways of this family publish the member, or the settings name it. Names are without prefix. */
export function isListedMember(
  member: string,
  { kind, known }: { kind: Notification['kind']; known: readonly string[] },
): boolean {
  return MEMBERS[kind].has(member) || known.includes(member)
}

/**
 * Whether a notification has the published form: every signed member is one that the gateway is known to sign.
 * The hash joins values without their names, so in other members the same hash is valid for other values.
 * @param signed the names of the signed members that are not empty, with prefix
 * @param known further members of this gateway's form, without prefix (`IPN_KNOWN_MEMBERS`)
 */
export function isPublishedForm(
  signed: readonly string[],
  { kind, prefix, known }: { kind: Notification['kind']; prefix: string; known: readonly string[] },
): boolean {
  const listed = { kind, known }
  return signed.every((name) => isListedMember(name.slice(prefix.length + 1), listed))
}
