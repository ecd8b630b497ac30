import { isLosslessNumber, parse, stringify } from 'lossless-json'
import { maskCardData, maskCardText } from '../platform/crypto/mask-cards.ts'
import { HIDDEN, hideSecretsInText, isSecretName } from '../platform/crypto/secret-names.ts'
import type { WireParams } from './signature.ts'
import { toStorable } from './to-storable.ts'

type NameKind = 'hash' | 'secret' | 'card' | 'plain'

const CARD_NAME = /card|cvv|cvc|cvn|csc|pan(?![a-z])|security|verification/i

/** The parser marks its numbers with this member, so that masking drops it from any other object. */
const NUMBER_MARK = 'isLosslessNumber'

/** Bounds the memory that names chosen by a sender can take. */
const MAX_NAMES = 1_000

/**
 * Makes the function that masks a notification for storage: tokens and other credentials, and card data in members
 * named for it and in nested values. Ids, amounts and the hash stay: they are the evidence. A body without such
 * members is kept byte for byte.
 * @param prefix of the members' names, without its underscore
 */
export function createMaskNotification(
  prefix: string,
): (body: string, format: 'json' | 'form', params: WireParams) => string {
  const kinds = new Map<string, NameKind>([[`${prefix}_SecureHash`, 'hash']])
  const findKind = (name: string): NameKind => {
    const known = kinds.get(name)
    if (known !== undefined) return known
    const kind = isSecretName(name) ? 'secret' : CARD_NAME.test(name) ? 'card' : 'plain'
    if (kinds.size < MAX_NAMES) kinds.set(name, kind)
    return kind
  }
  return (body, format, params) => {
    let masked: Record<string, unknown> | undefined
    for (const name in params) {
      const value = params[name]
      const kind = findKind(name)
      if (kind === 'hash' || (kind === 'plain' && isFlat(value))) continue
      masked ??= { ...params }
      masked[name] = maskMember(name, value, kind)
    }
    if (!masked) return body
    return format === 'json' ? (stringify(masked) ?? '') : writeForm(masked)
  }
}

/** Whether a value can hold no other members: a text that is JSON may. */
function isFlat(value: unknown): boolean {
  if (typeof value === 'string') return !(value.startsWith('{') || value.startsWith('['))
  return typeof value !== 'object' || value === null || isLosslessNumber(value)
}

function maskMember(name: string, value: unknown, kind: NameKind): unknown {
  if (kind === 'secret') return value === null || value === '' ? value : HIDDEN
  if (kind === 'card') {
    const masked = maskCardData({ [name]: value })
    return typeof masked === 'object' && masked !== null ? Reflect.get(masked, name) : HIDDEN
  }
  return typeof value === 'string' ? maskJsonText(value) : toStorable(maskCardData(value))
}

/** A text in which nothing is masked stays as it was written: it may be signed. */
function maskJsonText(text: string): string {
  if (text.includes(NUMBER_MARK)) return maskCardText(hideSecretsInText(text))
  try {
    const value = parse(text)
    const masked = stringify(toStorable(maskCardData(value))) ?? text
    return masked === stringify(value) ? text : masked
  } catch {
    return hideSecretsInText(text)
  }
}

function writeForm(params: Readonly<Record<string, unknown>>): string {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) form.append(name, String(value))
  return form.toString()
}
