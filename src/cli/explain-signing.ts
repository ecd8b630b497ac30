import { describeMessageKind } from '../gateway/message-kinds.ts'
import {
  computeSecureHash,
  joinSignedValues,
  listSignedParams,
  NotSignableError,
} from '../gateway/signature.ts'
import type { SigningJob } from './prepare-signing.ts'

const SECRET = '<secret>'

/** Shorter secrets can occur in any message by chance: redacting them would only make it unreadable. */
const MIN_REDACTED_LENGTH = 6

/** Explains how the hash of a message is computed, without the secret: names, values, string to sign, hash. */
export function explainSigning(job: SigningJob): string[] {
  const { params, rule, secret } = job
  const signed = listSignedParams(params, rule)
  const width = Math.max(...[...signed, ...listHashExclusions(job)].map(({ name }) => name.length))
  const row = (name: string, text: string) => `  ${name.padEnd(width)}  ${text}`.trimEnd()
  const excluded = listHashExclusions(job).map(({ name, reason }) => row(name, reason))
  return [
    `A ${describeMessageKind(job.kind)} (${job.isKindGiven ? 'set by --as' : `detected from ${rule.prefix}_Command`}), sent as ${job.format}.`,
    '',
    'In the hash, in this order:',
    ...signed.map(({ name, text }) =>
      row(name, text === '' ? describeEmpty(params[name]) : escapeControls(text)),
    ),
    ...(excluded.length > 0 ? ['', 'Left out:', ...excluded] : []),
    '',
    'The string to sign (the values without separators, then the secret):',
    `  ${escapeControls(joinSignedValues(params, rule))}${SECRET}`,
    '',
    `${rule.prefix}_SecureHash (SHA-256, hexadecimal):`,
    `  ${computeSecureHash(params, secret, rule)}`,
  ]
}

/** Lists what may be a mistake although it does not affect the hash. */
export function listWarnings({ params, format, rule: { prefix }, secret }: SigningJob): string[] {
  const amounts = ['Amount', 'TransAmount', 'Fee'].map((name) => `${prefix}_${name}`)
  const asText = format === 'json' ? amounts.filter((name) => typeof params[name] === 'string') : []
  return [
    ...(secret === secret.trim()
      ? []
      : ['The secret has white space around it, which is hashed as part of it. Is that intended?']),
    ...asText.map(
      (name) =>
        `${name} is sent as a string. The hash is the same, but the specification requires a number.`,
    ),
    ...(format === 'form'
      ? [
          'A form has no types: every value is hashed as its decoded text, numbers as they are written.',
        ]
      : []),
  ]
}

/** Explains why a message cannot be signed. @returns undefined if it can */
export function findUnsignable({ params, rule }: SigningJob): string | undefined {
  try {
    listSignedParams(params, rule)
    return undefined
  } catch (error) {
    if (!(error instanceof NotSignableError)) throw error
    const name = error.parameter.slice(rule.prefix.length + 1)
    const names = [...rule.exclude, name].join(',')
    return `${error.message}: the signing rules do not cover this; leave it out with --exclude ${names}`
  }
}

/** Removes every secret of the job from a text, including secrets that occur in the message. */
export function redactSecrets(text: string, { secret, otherSecrets }: SigningJob): string {
  return [secret, ...otherSecrets.map((other) => other.secret)]
    .flatMap((value) => [value, value.trim()])
    .filter((value) => value.length >= MIN_REDACTED_LENGTH)
    .sort((a, b) => b.length - a.length)
    .reduce((redacted, value) => redacted.replaceAll(value, SECRET), text)
}

function listHashExclusions({ params, rule: { prefix, exclude }, excludedBy }: SigningJob) {
  const excluded = exclude.map((name) => `${prefix}_${name}`)
  return Object.keys(params).flatMap((name) => {
    if (name === `${prefix}_SecureHash`) return [{ name, reason: 'it is the hash itself' }]
    if (excluded.includes(name)) return [{ name, reason: `not hashed, ${excludedBy}` }]
    return name.startsWith(`${prefix}_`) ? [] : [{ name, reason: `does not start with ${prefix}_` }]
  })
}

function describeEmpty(value: unknown): string {
  return value === null ? '(null: contributes nothing)' : '(empty)'
}

/** Escapes control characters, which could break the line or control the terminal. */
function escapeControls(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
