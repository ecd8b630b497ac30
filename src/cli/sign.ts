import { type Command, InvalidArgumentError, Option } from 'commander'
import { describeMessageKind, MESSAGE_KINDS } from '../gateway/message-kinds.ts'
import {
  computeSecureHash,
  joinSignedValues,
  listSignedParams,
  NotSignableError,
  verifySecureHash,
} from '../gateway/signature.ts'
import { explainHash } from '../gateway/signing-mistakes.ts'
import { prepareSigning, type SigningJob, type SigningOptions } from './message.ts'
import { UsageError } from './options.ts'
import type { Cli } from './print.ts'

const HELP = `
The message is read from standard input, as JSON or as a form (a=b&c=d). The secret is SIGNING_SECRET in the
environment, or else that of the configured account that the message names. Secrets are never printed.`

/** Adds `sign` and `verify`, for a message on standard input; `verify` ends with exit code 0 or 1. */
export function addSigningCommands(program: Command, cli: Cli): void {
  addSigningOptions(program.command('sign'))
    .description('show how the hash of a message is computed, and the hash')
    .action(async (options: SigningOptions) => {
      cli.print(await signMessage(cli, options))
    })
  addSigningOptions(program.command('verify'))
    .description('check the hash of a message and explain a wrong one; exit code 0 or 1')
    .action(async (options: SigningOptions) => {
      const { valid, text } = await verifyMessage(cli, options)
      cli.print(text)
      if (!valid) cli.setExitCode(1)
    })
}

function addSigningOptions(command: Command): Command {
  return command
    .addOption(new Option('--as <kind>', 'the kind of message').choices(MESSAGE_KINDS))
    .option(
      '--exclude <names>',
      'names left out of the hash, separated by commas, or none',
      readNames,
    )
    .option('--prefix <prefix>', 'the prefix of the names, without its underscore', readPrefix)
    .addHelpText('after', HELP)
}

function readNames(text: string): string[] {
  if (text === 'none') return []
  const names = text.split(',')
  if (names.every((name) => /^\w+$/.test(name))) return names
  throw new InvalidArgumentError('Write names separated by commas, or none.')
}

function readPrefix(text: string): string {
  if (/^[A-Za-z][A-Za-z0-9]*$/.test(text)) return text
  throw new InvalidArgumentError('Write letters and digits, without the underscore.')
}

type Message = Pick<Cli, 'name' | 'input' | 'env'>

/**
 * Explains how the hash of the message on standard input is computed (specification 5.2).
 * @throws UsageError, ConfigError
 */
export async function signMessage(message: Message, options: SigningOptions): Promise<string> {
  const job = await prepareSigning(message, options)
  const unsignable = findUnsignable(job)
  if (unsignable) throw new UsageError(unsignable)
  const warnings = listWarnings(job)
  const lines = [...explainSigning(job), ...(warnings.length > 0 ? ['', ...warnings] : [])]
  return redactSecrets(`${lines.join('\n')}\n`, job)
}

/**
 * Checks the hash of the message on standard input, and explains a wrong one by the mistake its sender may have made.
 * @throws UsageError, ConfigError
 */
export async function verifyMessage(
  message: Message,
  options: SigningOptions,
): Promise<{ valid: boolean; text: string }> {
  const job = await prepareSigning(message, options)
  const { params, rule, secret } = job
  const name = `${rule.prefix}_SecureHash`
  const given = params[name]
  const valid = verifySecureHash(params, [secret], rule) === 'verified'
  const unsignable = findUnsignable(job)
  const sent = typeof given === 'string' && given !== '' ? escapeControls(given) : undefined
  const lines = [
    ...(valid ? describeValid(given) : describeInvalid(job, given)),
    ...listWarnings(job),
    '',
    ...(unsignable ? [unsignable] : explainSigning(job)),
    ...(sent === undefined ? [] : [`${name} of the message:`, `  ${sent}`]),
  ]
  return { valid, text: redactSecrets(`${lines.join('\n')}\n`, job) }
}

const COMMANDS = {
  ipn: 'PAY',
  'refund-ipn': 'REFUND',
  query: 'QUERY_PT',
  'refund-request': 'REFUND',
}

/** The hash that a value can be read as, and how its form deviates from the specification. */
type GivenHash = { hash: string | undefined; oddity: string | undefined }

const HEX_LENGTHS = new Map([
  [32, 'MD5'],
  [40, 'SHA-1'],
  [96, 'SHA-384'],
  [128, 'SHA-512'],
])

/** Reads a hash leniently: white space around it, either letter case, and Base64 are accepted. */
function readGivenHash(given: unknown): GivenHash {
  if (typeof given !== 'string') return { hash: undefined, oddity: 'it is not a string' }
  const bare = given.trim()
  if (/^[0-9a-f]{64}$/i.test(bare)) {
    const oddity = bare === given ? undefined : 'it has white space around it'
    return { hash: bare.toLowerCase(), oddity }
  }
  const bytes = Buffer.from(bare, 'base64')
  if (/^[\w+/-]{43}=?$/.test(bare) && bytes.length === 32) {
    return { hash: bytes.toString('hex'), oddity: 'it is Base64, not hexadecimal' }
  }
  const algorithm = /^[0-9a-f]+$/i.test(bare) ? HEX_LENGTHS.get(bare.length) : undefined
  const form = algorithm ? `the length of ${algorithm}` : 'SHA-256 has 64 hexadecimal ones'
  return { hash: undefined, oddity: `it has ${bare.length} characters, ${form}` }
}

function describeValid(given: unknown): string[] {
  const isUpperCase = typeof given === 'string' && given !== given.toLowerCase()
  const warning =
    'The hash is in upper case, which is accepted; the specification shows lower case.'
  return ['VALID', ...(isUpperCase ? [warning] : [])]
}

function describeInvalid(job: SigningJob, given: unknown): string[] {
  const name = `${job.rule.prefix}_SecureHash`
  if (given === undefined || given === null || given === '') {
    return ['NOT VALID', `${name} is missing or empty.`]
  }
  const { hash, oddity } = readGivenHash(given)
  const form = oddity ? [`${name}: ${oddity}.`] : []
  if (hash === undefined || hash === computeRight(job)) return ['NOT VALID', ...form]
  const mistake = explainHash(hash, describeMaterial(job))
  const why = mistake === undefined ? WRONG_SECRET : [`The hash was computed ${mistake}.`]
  return ['NOT VALID', ...form, ...why]
}

/** @returns undefined for a message that cannot be signed */
function computeRight(job: SigningJob): string | undefined {
  const { params, secret, rule } = job
  return findUnsignable(job) ? undefined : computeSecureHash(params, secret, rule)
}

const WRONG_SECRET = [
  'No common mistake explains this hash: most likely the secret is wrong, or a value changed after signing.',
  'Compare the secret with the one issued, and the values below with those the sender hashed.',
]

function describeMaterial(job: SigningJob) {
  const account = job.accountCode === undefined ? {} : { MerchantCode: job.accountCode }
  return { ...job, constants: { Version: '1', Command: COMMANDS[job.kind], ...account } }
}

const SECRET = '<secret>'

/** Shorter secrets can occur in any message by chance: redacting them would only make it unreadable. */
const MIN_REDACTED_LENGTH = 6

/** Explains how the hash of a message is computed, without the secret: names, values, string to sign, hash. */
function explainSigning(job: SigningJob): string[] {
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
function listWarnings({ params, format, rule: { prefix }, secret }: SigningJob): string[] {
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
function findUnsignable({ params, rule }: SigningJob): string | undefined {
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
function redactSecrets(text: string, { secret, otherSecrets }: SigningJob): string {
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
