import { isLosslessNumber } from 'lossless-json'
import {
  HIDDEN,
  hideSecretsInText,
  isSecretName,
  maskCardData,
  maskCardText,
} from '../platform/crypto/masking.ts'
import { isHarmless, maskNested, maskText } from './mask-texts.ts'
import { isListedMember } from './published-form.ts'
import type { Notification } from './read-notification.ts'
import { isShort, type Members, writeBody } from './shorten-body.ts'
import type { SignatureRule } from './signature.ts'

type NameKind = 'hash' | 'secret' | 'card' | 'plain' | 'unlisted'

const CARD_NAME = /card|cvv|cvc|cvn|csc|pan(?![a-z])|security|verification/i

/** Bounds the memory that names chosen by a sender can take. */
const MAX_NAMES = 1_000

/** Of members that are neither signed nor listed: any sender can add as many as a body holds. */
const MAX_UNLISTED = 16
const MAX_UNLISTED_NAME = 32
const NOT_KEPT = '(not kept)'

/** The form of an account's notifications of one kind. */
export type NotificationForm = {
  kind: Notification['kind']
  /** `IPN_KNOWN_MEMBERS` */
  known: readonly string[]
  signature: SignatureRule
}

/**
 * Makes the function that writes a notification for storage. It masks tokens and other credentials, and card data in
 * members named for it and in nested values. Ids, amounts and the hash stay: they are the evidence. Of members that are
 * neither signed nor listed it keeps the names of the first 16. At most 8 KiB; a shorter body without such members is
 * kept byte for byte.
 */
export function createMaskNotification(
  form: NotificationForm,
): (body: string, format: 'json' | 'form', params: Members) => string {
  const { isSigned, findKind } = classifyNames(form)
  return (body, format, params) => {
    let masked: Record<string, unknown> | undefined
    let unlisted = 0
    for (const name in params) {
      const value = params[name]
      const kind = findKind(name)
      if (kind === 'hash' || (kind === 'plain' && isFlat(value))) continue
      masked ??= { ...params }
      if (kind !== 'unlisted') masked[name] = maskMember(name, value, kind)
      else {
        delete masked[name]
        unlisted += 1
        if (unlisted > MAX_UNLISTED) continue
        const shown = shortenName(name)
        if (!Object.hasOwn(masked, shown)) masked[shown] = NOT_KEPT
      }
    }
    if (!masked && isShort(body)) return body
    return writeBody(masked ?? params, format, isSigned)
  }
}

function classifyNames({ kind, known, signature: { prefix, exclude } }: NotificationForm) {
  const start = `${prefix}_`
  const isSigned = (name: string) =>
    name.startsWith(start) && !exclude.includes(name.slice(start.length))
  const isKept = (name: string) =>
    isSigned(name) ||
    (name.startsWith(start) && isListedMember(name.slice(start.length), { kind, known }))
  const kinds = new Map<string, NameKind>([[`${prefix}_SecureHash`, 'hash']])
  const classify = (name: string): NameKind => {
    if (!isKept(name)) return 'unlisted'
    return isSecretName(name) ? 'secret' : CARD_NAME.test(name) ? 'card' : 'plain'
  }
  const findKind = (name: string): NameKind => {
    const found = kinds.get(name)
    if (found !== undefined) return found
    const kind = classify(name)
    if (kinds.size < MAX_NAMES) kinds.set(name, kind)
    return kind
  }
  return { isSigned, findKind }
}

function shortenName(name: string): string {
  // Cut first: looking for card numbers in 60 KB takes 20 ms. Twice as much, so that a number at the end is seen whole.
  const masked = maskCardText(
    hideSecretsInText(name.slice(0, 2 * MAX_UNLISTED_NAME)),
  ).toWellFormed()
  return masked.length <= MAX_UNLISTED_NAME ? masked : `${masked.slice(0, MAX_UNLISTED_NAME)}…`
}

/** Whether a value holds no other members, and no text that may hold a credential. */
function isFlat(value: unknown): boolean {
  if (typeof value === 'string') return isHarmless(value)
  return typeof value !== 'object' || value === null || isLosslessNumber(value)
}

function maskMember(name: string, value: unknown, kind: NameKind): unknown {
  if (kind === 'secret') return value === null || value === '' ? value : HIDDEN
  if (kind === 'card') {
    const masked = maskCardData({ [name]: value })
    return typeof masked === 'object' && masked !== null ? Reflect.get(masked, name) : HIDDEN
  }
  return typeof value === 'string' ? maskText(value) : maskNested(value)
}
