import { type Command, Option } from 'commander'
import { z } from 'zod'
import { explainHash } from '../gateway/explain-signature.ts'
import {
  computeSecureHash,
  joinSignedValues,
  listSignedParams,
  MESSAGE_TITLES,
  NotSignableError,
  verifySecureHash,
} from '../gateway/signature.ts'
import { prepareSigning, type SigningJob, type SigningOptions } from './message.ts'
import { readAs, UsageError } from './options.ts'
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
    .addOption(
      new Option('--as <kind>', 'the kind of message').choices(Object.keys(MESSAGE_TITLES)),
    )
    .option(
      '--exclude <names>',
      'names left out of the hash, separated by commas, or none',
      readNames,
    )
    .option('--prefix <prefix>', 'the prefix of the names, without its underscore', readPrefix)
    .addHelpText('after', HELP)
}

const readNames = readAs(
  z
    .string()
    .regex(/^\w+(,\w+)*$/)
    .transform((text) => (text === 'none' ? [] : text.split(','))),
  'Write names separated by commas, or none.',
)

const readPrefix = readAs(
  z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/),
  'Write letters and digits, without the underscore.',
)

type Message = Pick<Cli, 'name' | 'input' | 'env'>

/** Explains how the hash of a message is computed (specification 5.2). @throws UsageError, ConfigError */
export async function signMessage(message: Message, options: SigningOptions): Promise<string> {
  const job = await prepareSigning(message, options)
  const { hash, lines } = compute(job)
  if (hash === undefined) throw new UsageError(lines.join(' '))
  const warnings = listWarnings(job)
  return present(job, [...lines, ...(warnings.length > 0 ? ['', ...warnings] : [])])
}

/** Checks the hash of the message on standard input, and explains a wrong one. @throws UsageError, ConfigError */
export async function verifyMessage(
  message: Message,
  options: SigningOptions,
): Promise<{ valid: boolean; text: string }> {
  const job = await prepareSigning(message, options)
  const name = `${job.rule.prefix}_SecureHash`
  const given = job.params[name]
  const { hash: right, lines } = compute(job)
  const valid = verifySecureHash(job.params, [job.secret], job.rule) === 'verified'
  const sent = typeof given === 'string' && given !== '' ? escapeControls(given) : undefined
  const text = present(job, [
    valid ? 'VALID' : 'NOT VALID',
    ...(valid ? listOddities(given) : explainWrong(job, given, right)),
    ...listWarnings(job),
    '',
    ...lines,
    ...(sent === undefined ? [] : [`${name} of the message:`, `  ${sent}`]),
  ])
  return { valid, text }
}

function listOddities(given: unknown): string[] {
  if (typeof given !== 'string' || given === given.toLowerCase()) return []
  return ['The hash is in upper case, which is accepted; the specification shows lower case.']
}

function explainWrong(job: SigningJob, given: unknown, right: string | undefined): string[] {
  const name = `${job.rule.prefix}_SecureHash`
  if (given === undefined || given === null || given === '') return [`${name} is missing or empty.`]
  const { hash, oddity } = readGivenHash(given)
  const form = oddity ? [`${name}: ${oddity}.`] : []
  if (hash === undefined || hash === right) return form
  const account = job.accountCode === undefined ? {} : { MerchantCode: job.accountCode }
  const constants = { Version: '1', Command: COMMANDS[job.kind], ...account }
  const mistake = explainHash(hash, { ...job, constants })
  return [...form, ...(mistake ? [`The hash was computed ${mistake}.`] : WRONG_SECRET)]
}

const COMMANDS = {
  ipn: 'PAY',
  'refund-ipn': 'REFUND',
  query: 'QUERY_PT',
  'refund-request': 'REFUND',
}

const WRONG_SECRET = [
  'No common mistake explains this hash: most likely the secret is wrong, or a value changed after signing.',
  'Compare the secret with the one issued, and the values below with those the sender hashed.',
]

/** How many hexadecimal characters the hashes of other algorithms have. */
const HEX_LENGTHS = new Map([
  [32, 'MD5'],
  [40, 'SHA-1'],
  [96, 'SHA-384'],
  [128, 'SHA-512'],
])

/** Reads a hash leniently: white space around it, either letter case, and Base64. */
function readGivenHash(given: unknown): { hash?: string; oddity?: string } {
  if (typeof given !== 'string') return { oddity: 'it is not a string' }
  const bare = given.trim()
  if (/^[0-9a-f]{64}$/i.test(bare)) {
    const hash = bare.toLowerCase()
    return bare === given ? { hash } : { hash, oddity: 'it has white space around it' }
  }
  const bytes = Buffer.from(bare, 'base64')
  if (/^[\w+/-]{43}=?$/.test(bare) && bytes.length === 32) {
    return { hash: bytes.toString('hex'), oddity: 'it is Base64, not hexadecimal' }
  }
  const algorithm = /^[0-9a-f]+$/i.test(bare) ? HEX_LENGTHS.get(bare.length) : undefined
  const form = algorithm ? `the length of ${algorithm}` : 'SHA-256 has 64 hexadecimal ones'
  return { oddity: `it has ${bare.length} characters, ${form}` }
}

const SECRET = '<secret>'

/** Computes the hash of a message, and tells how without the secret; without a hash it tells why there is none. */
function compute(job: SigningJob): { hash?: string; lines: string[] } {
  const { params, rule, secret, kind, format } = job
  try {
    const signed = listSignedParams(params, rule).map(({ name, text }) => {
      const empty = params[name] === null ? '(null: contributes nothing)' : '(empty)'
      return [name, text === '' ? empty : escapeControls(text)] as const
    })
    const excluded = listExcluded(job)
    const width = Math.max(...[...signed, ...excluded].map(([name]) => name.length))
    const formatRows = (rows: readonly (readonly [string, string])[]) =>
      rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`.trimEnd())
    const hash = computeSecureHash(params, secret, rule)
    const how = job.isKindGiven ? 'set by --as' : `detected from ${rule.prefix}_Command`
    const lines = [
      `A ${MESSAGE_TITLES[kind]} (${how}), sent as ${format}.`,
      '',
      'In the hash, in this order:',
      ...formatRows(signed),
      ...(excluded.length > 0 ? ['', 'Left out:', ...formatRows(excluded)] : []),
      '',
      'The string to sign (the values without separators, then the secret):',
      `  ${escapeControls(joinSignedValues(params, rule))}${SECRET}`,
      '',
      `${rule.prefix}_SecureHash (SHA-256, hexadecimal):`,
      `  ${hash}`,
    ]
    return { hash, lines }
  } catch (error) {
    if (!(error instanceof NotSignableError)) throw error
    const names = [...rule.exclude, error.parameter.slice(rule.prefix.length + 1)].join(',')
    const advice = `the signing rules do not cover this; leave it out with --exclude ${names}`
    return { lines: [`${error.message}: ${advice}`] }
  }
}

/** Lists what is not hashed, each with the reason. */
function listExcluded({ params, rule: { prefix, exclude }, excludedBy }: SigningJob) {
  const excluded = exclude.map((name) => `${prefix}_${name}`)
  return Object.keys(params).flatMap((name) => {
    const reason =
      (name === `${prefix}_SecureHash` && 'it is the hash itself') ||
      (excluded.includes(name) && `not hashed, ${excludedBy}`) ||
      (!name.startsWith(`${prefix}_`) && `does not start with ${prefix}_`)
    return reason ? [[name, reason] as const] : []
  })
}

/** Lists what may be a mistake although it does not affect the hash. */
function listWarnings({ params, format, rule: { prefix }, secret }: SigningJob): string[] {
  const warnings: string[] = []
  if (secret !== secret.trim()) {
    warnings.push(
      'The secret has white space around it, which is hashed as part of it. Is that intended?',
    )
  }
  for (const name of ['Amount', 'TransAmount', 'Fee'].map((one) => `${prefix}_${one}`)) {
    if (format === 'form' || typeof params[name] !== 'string') continue
    warnings.push(
      `${name} is sent as a string. The hash is the same, but the specification requires a number.`,
    )
  }
  if (format === 'form') {
    warnings.push(
      'A form has no types: every value is hashed as its decoded text, numbers as they are written.',
    )
  }
  return warnings
}

/** Shorter secrets can occur in any message by chance: redacting them would only make it unreadable. */
const MIN_REDACTED_LENGTH = 6

/** Joins lines without any secret of the job, also one that occurs in the message. */
function present({ secret, otherSecrets }: SigningJob, lines: readonly string[]): string {
  return [secret, ...otherSecrets.map((other) => other.secret)]
    .flatMap((value) => [value, value.trim()])
    .filter((value) => value.length >= MIN_REDACTED_LENGTH)
    .sort((a, b) => b.length - a.length)
    .reduce((text, value) => text.replaceAll(value, SECRET), `${lines.join('\n')}\n`)
}

/** Escapes control characters, which could break the line or control the terminal. */
function escapeControls(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
