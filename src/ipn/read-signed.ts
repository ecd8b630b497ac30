import { hash } from 'node:crypto'
import { isPublishedForm } from '../gateway/published-form.ts'
import type { Notification } from '../gateway/read-notification.ts'
import { findTextOrigin } from '../gateway/request-text.ts'
import {
  listSignedParams,
  NotSignableError,
  type SignatureRule,
  type SignatureVerdict,
  type WireParams,
} from '../gateway/signature.ts'
import type { Reading } from './types.ts'

type Signed = {
  merchantCode: string
  kind: Notification['kind']
  verdict: SignatureVerdict
  rule: SignatureRule
  /** `IPN_KNOWN_MEMBERS` */
  known: readonly string[]
  /** `GATEWAY_REFUND_HASH_EXCLUDE` */
  refundHashExclude: readonly string[]
  body: string
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
  params: WireParams,
  { merchantCode, kind, verdict, rule, known, refundHashExclude, body }: Signed,
): Reading {
  const signed = listPresent(params, rule)
  const identity = signed ? JSON.stringify(signed) : body
  const fingerprint = hash('sha256', `${merchantCode}\n${identity}`)
  if (verdict !== 'verified' || !signed) {
    return { ...UNSIGNED, fingerprint }
  }
  const names = signed.map(([name]) => name)
  const text = signed.map(([, value]) => value).join('')
  const origin = findTextOrigin(text, { kind, merchantCode, refundHashExclude })
  const published = isPublishedForm(names, { kind, prefix: rule.prefix, known })
  const signedKey = shortenHash(String(params[`${rule.prefix}_SecureHash`]))
  return { fingerprint, signedKey, published, hint: !published, recut: false, origin }
}

function listPresent(params: WireParams, rule: SignatureRule): [string, string][] | undefined {
  try {
    return listSignedParams(params, rule).flatMap(({ name, text }): [string, string][] =>
      text === '' ? [] : [[name, text]],
    )
  } catch (error) {
    if (error instanceof NotSignableError) return undefined
    throw error
  }
}

/** The first 64 bits of a hash as a decimal: enough to find the other readings of a signed text. */
function shortenHash(hex: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`)).toString()
}
