import { hash } from 'node:crypto'
import { isPublishedForm } from '../gateway/published-form.ts'
import type { Notification } from '../gateway/read-notification.ts'
import { findTextOrigin } from '../gateway/request-text.ts'
import type { SignatureVerdict, WireParams } from '../gateway/signature.ts'
import type { Reading } from './types.ts'

type Signed = {
  params: WireParams
  /** What `findSignedParams` returns of the parameters. */
  signed: readonly { name: string; text: string }[] | undefined
  merchantCode: string
  kind: Notification['kind']
  verdict: SignatureVerdict
  body: string
}

/** The form of a gateway's notifications, as the settings name it. */
type SignedForm = {
  /** `GATEWAY_FIELD_PREFIX` */
  prefix: string
  /** `IPN_KNOWN_MEMBERS` */
  known: readonly string[]
  /** `GATEWAY_REFUND_HASH_EXCLUDE` */
  refundHashExclude: readonly string[]
}

const UNSIGNED = {
  signedKey: undefined,
  published: false,
  hint: false,
  recut: false,
  origin: 'notification' as const,
}

/**
 * Identifies a notification by what is signed: the same signed content with other unsigned members is the same
 * notification. An empty value contributes nothing to the hash, so it does not count as a member either. What
 * cannot be signed is identified by its bytes.
 */
export function readSigned(
  { params, signed, merchantCode, kind, verdict, body }: Signed,
  { prefix, known, refundHashExclude }: SignedForm,
): Reading {
  const names: string[] = []
  const present: [string, string][] = []
  let joined = ''
  for (const { name, text } of signed ?? []) {
    if (text === '') continue
    names.push(name)
    present.push([name, text])
    joined += text
  }
  const identity = signed ? JSON.stringify(present) : body
  const fingerprint = hash('sha256', `${merchantCode}\n${identity}`)
  if (verdict !== 'verified' || !signed) return { ...UNSIGNED, fingerprint }
  const origin = findTextOrigin(joined, { kind, merchantCode, refundHashExclude })
  const published = isPublishedForm(names, { kind, prefix, known })
  const signedKey = shortenHash(String(params[`${prefix}_SecureHash`]))
  return { fingerprint, signedKey, published, hint: !published, recut: false, origin }
}

/** The first 64 bits of a hash as a decimal: enough to find the other readings of a signed text. */
function shortenHash(hex: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`)).toString()
}
