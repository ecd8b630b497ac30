import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { readSigningConfig } from '../config/config.ts'
import { explainHash } from '../gateway/explain-signature.ts'
import { parseFormParams, parseJsonParams } from '../gateway/parse-body.ts'
import {
  computeSecureHash,
  detectMessageKind,
  joinSignedValues,
  listHashExclusions,
  listSignedParams,
  MESSAGE_TITLES,
  type MessageKind,
  NotSignableError,
  type SignatureRule,
  verifySecureHash,
  type WireParams,
} from '../gateway/signature.ts'
import { type CliStreams, command, UsageError } from './command.ts'
import { clean } from './print.ts'

const KINDS = ['ipn', 'refund-ipn', 'query', 'refund-request'] as const satisfies MessageKind[]

const input = {
  as: z
    .enum(KINDS)
    .optional()
    .describe(`the kind of message: ${KINDS.join(', ')}`),
  exclude: z
    .string()
    .regex(/^\w+(,\w+)*$/, 'must be names separated by commas, or none')
    .transform((text) => (text === 'none' ? [] : text.split(',')))
    .optional()
    .describe('names left out of the hash, separated by commas, or none'),
  prefix: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9]*$/, 'must be letters and digits, without the underscore')
    .optional()
    .describe('the prefix of the names, without its underscore'),
}

type SigningOptions = Partial<z.output<z.ZodObject<typeof input>>>

const HELP = `The message is read from standard input, as JSON or as a form (a=b&c=d). The secret is SIGNING_SECRET in the
environment, or else that of the configured account that the message names. Secrets are never printed.`

export const SIGNING = [
  command({
    name: 'sign',
    description: 'show how the hash of a message is computed, and the hash',
    input,
    examples: HELP,
    run: signMessage,
  }),
  command({
    name: 'verify',
    description: 'check the hash of a message and explain a wrong one; exit code 0 or 1',
    input,
    examples: HELP,
    run: verifyMessage,
  }),
]

type Message = Pick<CliStreams, 'name' | 'input' | 'env'>

/** Shows how the hash of a message is computed (specification 5.2). @throws UsageError, ConfigError */
export async function signMessage(message: Message, options: SigningOptions) {
  const job = await prepare(message, options)
  const { hash, lines } = compute(job)
  if (hash === undefined) throw new UsageError(lines.join(' '))
  return { value: { hash }, text: redact(job, lines) }
}

/** Checks the hash of the message on standard input, and explains a wrong one. @throws UsageError, ConfigError */
export async function verifyMessage(message: Message, options: SigningOptions) {
  const job = await prepare(message, options)
  const name = `${job.rule.prefix}_SecureHash`
  const given = job.params[name]
  const { hash, lines } = compute(job)
  const valid = verifySecureHash(job.params, [job.secret], job.rule) === 'verified'
  const verdict = valid ? ['VALID'] : ['NOT VALID', ...explainWrong(job, name, given)]
  const sent = [`${name} of the message:`, `  ${clean(String(given ?? '-'))}`]
  const text = redact(job, [...verdict, '', ...lines, ...sent])
  return { value: { valid, hash: hash ?? null }, text, isFinding: !valid }
}

type Job = {
  format: 'json' | 'form'
  params: WireParams
  kind: MessageKind
  rule: SignatureRule
  secret: string
  otherSecrets: { what: string; secret: string }[]
  /** The account of the message, if it is configured. */
  accountCode: string | undefined
}

/** Combines message, options and settings. @throws UsageError if something is missing; ConfigError */
async function prepare(message: Message, options: SigningOptions): Promise<Job> {
  const config = readSigningConfig(message.env)
  const prefix = options.prefix ?? config.GATEWAY_FIELD_PREFIX
  const body = await readBody(message)
  const prefixes = Object.keys(body.params).map(
    (name) => /^([A-Za-z][A-Za-z0-9]*)_/.exec(name)?.[1],
  )
  if (!prefixes.includes(prefix)) {
    const other = prefixes.find(Boolean)
    const hint = other ? `; did you mean --prefix ${other}?` : ''
    throw new UsageError(`no parameter starts with ${prefix}_${hint}`)
  }
  const kind = options.as ?? detectMessageKind(body.params, prefix)
  const start = new RegExp(`^${prefix}_`)
  const exclude =
    options.exclude?.map((name) => name.replace(start, '')) ?? listHashExclusions(kind, config)
  const code = body.params[`${prefix}_MerchantCode`]
  return { ...body, kind, rule: { prefix, exclude }, ...chooseSecret(config, code) }
}

/** Chooses `SIGNING_SECRET`, or else the secret of the account that the message names, or of the only one. */
function chooseSecret(
  { accounts, SIGNING_SECRET: given, ...settings }: ReturnType<typeof readSigningConfig>,
  code: unknown,
): Pick<Job, 'secret' | 'otherSecrets' | 'accountCode'> {
  const only = code === undefined && accounts.length === 1 ? accounts[0] : undefined
  const account = accounts.find(({ merchantCode }) => merchantCode === code) ?? only
  const secret = given ?? account?.secret
  if (secret === undefined) {
    const what = 'the message names no merchant account that is configured'
    throw new UsageError(`no secret: ${what}; set SIGNING_SECRET in the environment`)
  }
  const previous = 'with the previous secret, which is accepted on notifications only'
  const others = [
    { what: previous, secret: account?.previousSecret ?? settings.GATEWAY_SECRET_PREVIOUS },
    ...accounts.map((one) => ({
      what: `with the secret configured for the account ${one.merchantCode}`,
      secret: one.secret,
    })),
  ]
  const otherSecrets = others.flatMap(({ what, secret: other = secret }) =>
    other === secret ? [] : [{ what, secret: other }],
  )
  return { secret, otherSecrets, accountCode: account?.merchantCode }
}

const MAX_BYTES = 1024 * 1024
const FORM = /^[^=&\s"{[]+=/

/** Reads a JSON object or a form (`a=b&c=d`) from standard input. @throws UsageError */
export async function readBody({ name, input }: Pick<CliStreams, 'name' | 'input'>) {
  const example = `pipe one in, for example: ${name} sign < body.json`
  if (input.isTTY) throw new UsageError(`no body on standard input; ${example}`)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk))
    size += chunk.length
    if (size > MAX_BYTES) throw new UsageError('the body is larger than 1 MiB')
  }
  const bytes = Buffer.concat(chunks)
  if (!isUtf8(bytes)) throw new UsageError('the body is not UTF-8 text')
  const text = bytes.toString('utf8').replace(/^\s+|[\r\n]+$/g, '')
  if (text === '') throw new UsageError(`standard input is empty; ${example}`)
  const format = FORM.test(text) ? ('form' as const) : ('json' as const)
  const parsed = format === 'form' ? parseFormParams(text) : parseJsonParams(text)
  if ('problem' in parsed) {
    const hint = format === 'form' ? '' : ', nor is it a form like a=b&c=d'
    throw new UsageError(`${parsed.problem}${hint}`)
  }
  return { format, params: parsed.params }
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

function explainWrong(job: Job, name: string, given: unknown): string[] {
  if (given === undefined || given === null || given === '') return [`${name} is missing or empty.`]
  if (typeof given !== 'string' || !/^[0-9a-f]{64}$/i.test(given)) {
    return [`${name} is not what SHA-256 gives: 64 hexadecimal digits, and nothing around them.`]
  }
  const account = job.accountCode === undefined ? {} : { MerchantCode: job.accountCode }
  const constants = { Version: '1', Command: COMMANDS[job.kind], ...account }
  const mistake = explainHash(given.toLowerCase(), { ...job, constants })
  return mistake ? [`The hash was computed ${mistake}.`] : WRONG_SECRET
}

const SECRET = '<secret>'

/** Computes the hash of a message. The lines explain it without the secret, or say why there is none. */
function compute({ params, rule, secret, kind, format }: Job): { hash?: string; lines: string[] } {
  try {
    const signed = listSignedParams(params, rule)
    const left = Object.keys(params).filter((param) => !signed.some(({ name }) => name === param))
    const hash = computeSecureHash(params, secret, rule)
    const lines = [
      `A ${MESSAGE_TITLES[kind]}, sent as ${format}.`,
      '',
      'In the hash, in this order:',
      ...signed.map(({ name, text }) => `  ${name.padEnd(24)}  ${clean(text)}`.trimEnd()),
      `Left out: ${left.join(', ') || 'nothing'}`,
      '',
      'The string to sign (the values without separators, then the secret):',
      `  ${clean(joinSignedValues(params, rule))}${SECRET}`,
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

/** Shorter secrets can occur in any message by chance: redacting them would only make it unreadable. */
const MIN_REDACTED_LENGTH = 6

/** Joins lines, and hides every secret of the job in them, even one that occurs in the message. */
function redact({ secret, otherSecrets }: Job, lines: readonly string[]): string {
  return [secret, ...otherSecrets.map((other) => other.secret)]
    .flatMap((value) => [value, value.trim()])
    .filter((value) => value.length >= MIN_REDACTED_LENGTH)
    .sort((a, b) => b.length - a.length)
    .reduce((text, value) => text.replaceAll(value, SECRET), `${lines.join('\n')}\n`)
}
