import { nameKind } from '../gateway/kinds.ts'
import {
  computeSecureHash,
  joinSignedValues,
  listSignedParams,
  NotSignableError,
} from '../gateway/signature.ts'
import type { Job } from './prepare.ts'

const SECRET = '<secret>'

/** Shorter secrets are words that stand in any message: hiding them would only spoil it. */
const HIDDEN_FROM = 6

/** How the hash of a message comes about, without the secret: names, values, string to sign, hash. */
export function explainSigning(job: Job): string[] {
  const { params, rule, secret } = job
  const signed = listSignedParams(params, rule)
  const width = Math.max(...[...signed, ...listLeftOut(job)].map(({ name }) => name.length))
  const row = (name: string, text: string) => `  ${name.padEnd(width)}  ${text}`.trimEnd()
  const left = listLeftOut(job).map(({ name, why }) => row(name, why))
  return [
    `A ${nameKind(job.kind)} (${job.forced ? 'as told by --as' : `judged by ${rule.prefix}_Command`}), sent as ${job.format}.`,
    '',
    'In the hash, in this order:',
    ...signed.map(({ name, text }) =>
      row(name, text === '' ? describeEmpty(params[name]) : escapeControls(text)),
    ),
    ...(left.length > 0 ? ['', 'Left out:', ...left] : []),
    '',
    'The string to sign (nothing between the values, the secret at its end):',
    `  ${escapeControls(joinSignedValues(params, rule))}${SECRET}`,
    '',
    `${rule.prefix}_SecureHash (SHA-256, hexadecimal):`,
    `  ${computeSecureHash(params, secret, rule)}`,
  ]
}

/** What deserves a word although the hash does not show it. */
export function listRemarks({ params, format, rule: { prefix }, secret }: Job): string[] {
  const amounts = ['Amount', 'TransAmount', 'Fee'].map((name) => `${prefix}_${name}`)
  const asText = format === 'json' ? amounts.filter((name) => typeof params[name] === 'string') : []
  return [
    ...(secret === secret.trim()
      ? []
      : ['The secret has white space around it, which is part of it here. Is that meant?']),
    ...asText.map(
      (name) =>
        `${name} is sent as text. The hash is the same as of the number, but the specification asks for a number.`,
    ),
    ...(format === 'form'
      ? [
          'A form has no types: every value enters the hash as its decoded text, numbers as they are written.',
        ]
      : []),
  ]
}

/** @returns why the message cannot be signed at all, if so */
export function findUnsignable({ params, rule }: Job): string | undefined {
  try {
    listSignedParams(params, rule)
    return undefined
  } catch (error) {
    if (!(error instanceof NotSignableError)) throw error
    const name = error.parameter.slice(rule.prefix.length + 1)
    const names = [...rule.exclude, name].join(',')
    return `${error.message}: no rule says how; leave it out with --exclude ${names}`
  }
}

/** The text without any secret of the job in it, whatever the message holds. */
export function hideSecrets(text: string, { secret, otherSecrets }: Job): string {
  return [secret, ...otherSecrets.map((one) => one.secret)]
    .flatMap((one) => [one, one.trim()])
    .filter((one) => one.length >= HIDDEN_FROM)
    .sort((a, b) => b.length - a.length)
    .reduce((hidden, one) => hidden.replaceAll(one, SECRET), text)
}

function listLeftOut({ params, rule: { prefix, exclude }, excludedBy }: Job) {
  const excluded = exclude.map((name) => `${prefix}_${name}`)
  return Object.keys(params).flatMap((name) => {
    if (name === `${prefix}_SecureHash`) return [{ name, why: 'it is the hash itself' }]
    if (excluded.includes(name)) return [{ name, why: `not hashed, ${excludedBy}` }]
    return name.startsWith(`${prefix}_`) ? [] : [{ name, why: `does not start with ${prefix}_` }]
  })
}

function describeEmpty(value: unknown): string {
  return value === null ? '(null: contributes nothing)' : '(empty)'
}

/** Control characters would break the line, or more, on a terminal. */
function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
