import { hash, timingSafeEqual } from 'node:crypto'
import { LosslessNumber } from 'lossless-json'
import type { Settings } from '../config/settings.ts'

export type WireParams = Readonly<Record<string, unknown>>

export type SignatureRule = {
  /** The wire prefix without its underscore, e.g. `svc`. */
  prefix: string
  /** Names, without prefix, that are left out of the hash, as `SecureHash` always is. */
  exclude: readonly string[]
}

export type SignatureVerdict = 'verified' | 'missing' | 'wrong' | 'unverifiable'

export type SignedMember = { name: string; text: string }

/** No rule defines how a nested object enters the hash. */
export class NotSignableError extends Error {
  readonly parameter: string
  constructor(parameter: string) {
    super(`${parameter} holds an object and cannot be signed`)
    this.name = 'NotSignableError'
    this.parameter = parameter
  }
}

/**
 * Lists the parameters that enter the hash, sorted by code unit: those with the prefix, except the hash itself and
 * the exclusions.
 * @throws NotSignableError when a value is a nested object
 */
export function listSignedParams(
  params: WireParams,
  { prefix, exclude }: SignatureRule,
): SignedMember[] {
  const start = `${prefix}_`
  const isSigned = (name: string) => name !== 'SecureHash' && !exclude.includes(name)
  return Object.keys(params)
    .filter((name) => name.startsWith(start) && isSigned(name.slice(start.length)))
    .sort()
    .map((name) => ({ name, text: formatValue(name, params[name]) }))
}

export const findSignedParams = (params: WireParams, rule: SignatureRule) =>
  ifSignable(() => listSignedParams(params, rule))

export const formatSigned = (value: unknown) => ifSignable(() => formatValue('', value))

export function ifSignable<T>(format: () => T): T | undefined {
  try {
    return format()
  } catch (error) {
    if (error instanceof NotSignableError) return undefined
    throw error
  }
}

/**
 * The `svc_SecureHash` of parameters (specification 5.2), as 64 lower-case hexadecimal characters.
 * @throws NotSignableError when a value is a nested object
 */
export function computeSecureHash(params: WireParams, secret: string, rule: SignatureRule): string {
  return hash('sha256', joinSignedValues(params, rule) + secret)
}

/** The text that is hashed, without the secret that follows it: the values in order, without a separator. */
export function joinSignedValues(params: WireParams, rule: SignatureRule): string {
  return joinTexts(listSignedParams(params, rule))
}

export function joinTexts(members: readonly SignedMember[]): string {
  let joined = ''
  for (const { text } of members) joined += text
  return joined
}

const HEX_SHA256 = /^[0-9a-f]{64}$/i

/**
 * Compares `svc_SecureHash`, in either letter case, with that of each secret (the current and the previous one) in
 * constant time. Never throws. `unverifiable`: a signed value is a nested object.
 */
export function verifySecureHash(
  params: WireParams,
  secrets: readonly string[],
  rule: SignatureRule,
  signed = findSignedParams(params, rule),
): SignatureVerdict {
  const name = `${rule.prefix}_SecureHash`
  const given = Object.hasOwn(params, name) ? params[name] : undefined
  if (given === undefined || given === null || given === '') return 'missing'
  if (typeof given !== 'string' || !HEX_SHA256.test(given)) return 'wrong'
  if (signed === undefined) return 'unverifiable'
  const claimed = Buffer.from(given, 'hex')
  const text = joinTexts(signed)
  const matches = secrets.map((secret) =>
    timingSafeEqual(claimed, hash('sha256', text + secret, 'buffer')),
  )
  return matches.includes(true) ? 'verified' : 'wrong'
}

function formatValue(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => formatScalar(name, item)).join(',')
  return formatScalar(name, value)
}

function formatScalar(name: string, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'object' && !(value instanceof LosslessNumber)) {
    throw new NotSignableError(name)
  }
  return String(value)
}

export const MESSAGE_TITLES = {
  ipn: 'payment notification',
  'refund-ipn': 'refund notification',
  query: 'QUERY_PT request',
  'refund-request': 'REFUND request',
}

export type MessageKind = keyof typeof MESSAGE_TITLES

/** The request and the notification of a refund share a command, but only the notification has a response code. */
export function detectMessageKind(params: WireParams, prefix: string): MessageKind {
  const command = params[`${prefix}_Command`]
  if (command === 'QUERY_PT') return 'query'
  if (command !== 'REFUND') return 'ipn'
  return Object.hasOwn(params, `${prefix}_ResponseCode`) ? 'refund-ipn' : 'refund-request'
}

export function listHashExclusions(
  kind: MessageKind,
  rules: Pick<Settings, 'IPN_HASH_EXCLUDE' | 'GATEWAY_REFUND_HASH_EXCLUDE'>,
): readonly string[] {
  if (kind === 'ipn') return rules.IPN_HASH_EXCLUDE
  return kind === 'refund-request' ? rules.GATEWAY_REFUND_HASH_EXCLUDE : []
}
