import { isLosslessNumber } from 'lossless-json'
import type { Config } from '../config/config.ts'
import { readAmount } from './answers.ts'
import { type Malformed, parseNotification, readText } from './parse-body.ts'
import { findResultCode, type NotificationKind, type Reading, readSigned } from './reading.ts'
import type { SignatureRule, SignatureVerdict, WireParams } from './signature.ts'
import {
  findSignedParams,
  formatSigned,
  listHashExclusions,
  verifySecureHash,
} from './signature.ts'
import { isId, isPrintable, MAX_ID } from './storable.ts'
import { createMaskNotification } from './stored-body.ts'

type NotificationRefusal = {
  verdict: 'malformed' | 'unknown_merchant' | 'bad_signature'
  why: string
}

/** What a notification states. Everything but the ids is a hint: only a query is authoritative. */
type Stated = {
  /** A decimal string. For a payment, amount and code are only compared with the answer to the query. */
  amount: string | undefined
  code: string | undefined
} & (
  | {
      kind: 'payment'
      transactionId: string
      orderId: string | undefined
      merchantTxnId: string | undefined
      currency: string | undefined
    }
  /** The transaction id of a refund notification is not that of the payment, so it is not read. */
  | { kind: 'refund'; requestId: string; paymentId: string | undefined }
)

/** A notification of a configured account whose signature `IPN_SIGNATURE` accepts. */
export type Notification = Stated &
  Reading & { merchantCode: string; verdict: SignatureVerdict; body: string }

/** The objects are written out, because every member that follows a spread costs V8 almost 1 µs. */
export function createNotificationReader(config: Config) {
  const { GATEWAY_FIELD_PREFIX: prefix, IPN_SIGNATURE: rule } = config
  const findAccount = indexAccounts(config)
  const forms = { payment: describeForm(config, 'payment'), refund: describeForm(config, 'refund') }

  return (format: 'json' | 'form', body: string): Notification | NotificationRefusal => {
    const parsed = parseNotification(body, format)
    if ('problem' in parsed) return { verdict: 'malformed', why: parsed.problem }
    const { params } = parsed
    const kind = forms.refund.read(params, 'Command') === 'REFUND' ? 'refund' : 'payment'
    const form = forms[kind]
    const id = readId(params, form.idName)
    if (typeof id !== 'string') return { verdict: 'malformed', why: id.problem }

    const account = findAccount(params[`${prefix}_MerchantCode`])
    if ('why' in account) return account
    const { merchantCode, secrets } = account
    const signed = findSignedParams(params, form.signature)
    const verdict = verifySecureHash(params, secrets, form.signature, signed)
    const isAccepted = verdict === 'verified' || (rule === 'optional' && verdict === 'missing')
    if (rule !== 'off' && !isAccepted) {
      return { verdict: 'bad_signature', why: `${prefix}_SecureHash is ${verdict}` }
    }
    const reading = readSigned({ signed, merchantCode, verdict, body }, form)
    const { textHash, documented, requestOf } = reading
    const amount = readAmount(form.read(params, 'Amount') ?? '')?.value
    const stored = form.mask(body, format, params)
    if (kind === 'refund') {
      return {
        kind,
        merchantCode,
        textHash,
        documented,
        requestOf,
        requestId: id,
        paymentId: form.read(params, 'PaymentID'),
        amount,
        code: findResultCode(signed ?? [], form),
        verdict,
        body: stored,
      }
    }
    return {
      kind,
      merchantCode,
      textHash,
      documented,
      requestOf,
      transactionId: id,
      orderId: form.read(params, 'OrderID'),
      merchantTxnId: form.read(params, 'MerchantTxnID'),
      currency: form.read(params, 'Currency'),
      // The amount of the order, even for a partial payment: TransAmount, which was paid, is not signed.
      amount,
      code: form.read(params, 'ResponseCode'),
      verdict,
      body: stored,
    }
  }
}

function describeForm(config: Config, kind: NotificationKind) {
  const { GATEWAY_FIELD_PREFIX: prefix, IPN_KNOWN_MEMBERS: known } = config
  const { GATEWAY_REFUND_HASH_EXCLUDE: refundHashExclude } = config
  const message = kind === 'refund' ? 'refund-ipn' : 'ipn'
  const signature = { prefix, exclude: listHashExclusions(message, config) }
  const form = { kind, known, refundHashExclude, signature }
  return {
    ...form,
    idName: `${prefix}_${kind === 'refund' ? 'RequestID' : 'TransactionID'}`,
    read: createMemberReader(signature),
    mask: createMaskNotification(form),
  }
}

function readId(params: WireParams, name: string): string | Malformed {
  const value = readText(params, name)
  const given = Object.hasOwn(params, name) ? (params[name] ?? '') : ''
  if (value === undefined && given !== '')
    return { problem: `${name} must be a string or a number` }
  if (!value?.trim()) return { problem: `${name} is missing or empty` }
  if (value.length > MAX_ID) return { problem: `${name} is longer than ${MAX_ID} characters` }
  return isPrintable(value) ? value : { problem: `${name} holds control characters` }
}

/**
 * Reads a signed member as the text that was hashed, whatever its JSON type: otherwise the same hash would cover
 * several meanings. A member that is excluded from the hash is not read, because anyone may have written it.
 */
function createMemberReader({ prefix, exclude }: SignatureRule) {
  return (params: WireParams, member: string): string | undefined => {
    if (exclude.includes(member)) return undefined
    const name = `${prefix}_${member}`
    const isOdd = (value: unknown) => typeof value === 'boolean' || Array.isArray(value)
    let text = readText(params, name)
    if (text === undefined && Object.hasOwn(params, name) && isOdd(params[name])) {
      text = formatSigned(params[name])
    }
    return text !== undefined && isId(text) ? text : undefined
  }
}

type KnownAccount = { merchantCode: string; secrets: readonly string[] }

/** Finds the account that a notification names. It may omit the name if only one account is configured. */
function indexAccounts({ accounts, GATEWAY_FIELD_PREFIX: prefix }: Config) {
  const known = new Map<string | undefined, KnownAccount>()
  for (const { merchantCode, secret, previousSecret } of accounts) {
    const secrets = previousSecret ? [secret, previousSecret] : [secret]
    known.set(merchantCode, { merchantCode, secrets })
  }
  const [only, another] = known.values()
  if (only && !another) known.set(undefined, only)
  return (given: unknown): KnownAccount | NotificationRefusal => {
    const code = isLosslessNumber(given) ? given.value : given
    // A form sends an omitted value as an empty one.
    const merchantCode = typeof code === 'string' && code !== '' ? code : undefined
    const found = known.get(merchantCode)
    if (found) return found
    if (merchantCode !== undefined) {
      return { verdict: 'unknown_merchant', why: `unknown ${prefix}_MerchantCode` }
    }
    const isMissing = given === undefined || given === null || given === ''
    const must = isMissing ? 'is missing' : 'must be a string or a number'
    return { verdict: 'malformed', why: `${prefix}_MerchantCode ${must}` }
  }
}
