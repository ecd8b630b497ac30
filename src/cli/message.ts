import { isUtf8 } from 'node:buffer'
import { readSigningConfig } from '../config/config.ts'
import { parseFormParams, parseJsonParams } from '../gateway/parse-body.ts'
import type { SignatureRule, WireParams } from '../gateway/signature.ts'
import {
  detectMessageKind,
  listHashExclusions,
  MESSAGE_TITLES,
  type MessageKind,
} from '../gateway/signature.ts'
import { UsageError } from './options.ts'
import type { Cli, Input } from './print.ts'

type Body = {
  format: 'json' | 'form'
  params: WireParams
  /** The undecoded values of a form; empty for JSON. */
  encoded: ReadonlyMap<string, string>
}

export type SigningOptions = {
  as?: MessageKind
  exclude?: readonly string[]
  prefix?: string
}

/** Everything that determines the hash of a message. */
export type SigningJob = Body & {
  kind: MessageKind
  /** Whether `--as` set the kind, rather than its detection. */
  isKindGiven: boolean
  rule: SignatureRule
  /** Names the rule that excludes parameters, for the report. */
  excludedBy: string
  secret: string
  otherSecrets: { what: string; secret: string }[]
  /** The account of the message, if it is configured. */
  accountCode: string | undefined
}

/** Combines message, options and settings. @throws UsageError if something is missing; ConfigError */
export async function prepareSigning(
  cli: Pick<Cli, 'name' | 'input' | 'env'>,
  options: SigningOptions,
): Promise<SigningJob> {
  const config = readSigningConfig(cli.env)
  const prefix = options.prefix ?? config.prefix
  const body = await readBody(cli)
  requirePrefix(body, prefix)
  const kind = options.as ?? detectMessageKind(body.params, prefix)
  const withoutPrefix = (name: string) =>
    name.startsWith(`${prefix}_`) ? name.slice(prefix.length + 1) : name
  const exclude = options.exclude?.map(withoutPrefix) ?? listHashExclusions(kind, config)
  const code = body.params[`${prefix}_MerchantCode`]
  const merchantCode = typeof code === 'string' ? code : undefined
  return {
    ...body,
    kind,
    isKindGiven: options.as !== undefined,
    rule: { prefix, exclude },
    excludedBy: options.exclude ? 'by --exclude' : `by the rule for a ${MESSAGE_TITLES[kind]}`,
    ...chooseSecret(config, merchantCode),
  }
}

function requirePrefix({ params }: Body, prefix: string): void {
  const names = Object.keys(params)
  if (names.some((name) => name.startsWith(`${prefix}_`))) return
  const other = names.map((name) => /^([A-Za-z][A-Za-z0-9]*)_/.exec(name)?.[1]).find(Boolean)
  const hint = other ? `; did you mean --prefix ${other}?` : ''
  throw new UsageError(`no parameter starts with ${prefix}_${hint}`)
}

/** Chooses `SIGNING_SECRET`, or else the secret of the account that the message names, or of the only one. */
function chooseSecret(
  { accounts, ...config }: ReturnType<typeof readSigningConfig>,
  merchantCode: string | undefined,
): Pick<SigningJob, 'secret' | 'otherSecrets' | 'accountCode'> {
  const account =
    accounts.find((one) => one.merchantCode === merchantCode) ??
    (merchantCode === undefined && accounts.length === 1 ? accounts[0] : undefined)
  const secret = config.secret ?? account?.secret
  if (secret === undefined) {
    const reason =
      merchantCode === undefined
        ? 'the message names no merchant account'
        : 'the merchant account it names is not configured'
    throw new UsageError(`no secret: ${reason}; set SIGNING_SECRET in the environment`)
  }
  const previous = 'with the previous secret, which is accepted on notifications only'
  const others = [
    { what: previous, secret: account?.previousSecret },
    { what: previous, secret: config.previousSecret },
    ...accounts.map((one) => ({
      what: `with the secret configured for the account ${one.merchantCode}`,
      secret: one.secret,
    })),
  ]
  const otherSecrets = others.flatMap((one) =>
    one.secret === undefined || one.secret === secret ? [] : [{ ...one, secret: one.secret }],
  )
  return { secret, otherSecrets, accountCode: account?.merchantCode }
}

const MAX_BYTES = 1024 * 1024
const FORM = /^[^=&\s"{[]+=/

/** Reads a JSON object or a form (`a=b&c=d`) from standard input. @throws UsageError */
export async function readBody({ name, input }: Pick<Cli, 'name' | 'input'>): Promise<Body> {
  const example = `pipe one in, for example: ${name} sign < body.json`
  if (input.isTTY) throw new UsageError(`no body on standard input; ${example}`)
  const text = await readText(input)
  if (text === '') throw new UsageError(`standard input is empty; ${example}`)
  const isForm = FORM.test(text)
  const parsed = isForm ? parseFormParams(text) : parseJsonParams(text)
  if ('problem' in parsed) {
    const hint = isForm ? '' : ', nor is it a form like a=b&c=d'
    throw new UsageError(`${parsed.problem}${hint}`)
  }
  const encoded = isForm ? splitForm(text) : new Map<string, string>()
  return { format: isForm ? 'form' : 'json', params: parsed.params, encoded }
}

async function readText(input: Input): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > MAX_BYTES) throw new UsageError('the body is larger than 1 MiB')
    chunks.push(bytes)
  }
  const bytes = Buffer.concat(chunks)
  if (!isUtf8(bytes)) throw new UsageError('the body is not UTF-8 text')
  return bytes.toString('utf8').replace(/^\s+|[\r\n]+$/g, '')
}

function splitForm(text: string): Map<string, string> {
  const parts = text.split('&').filter((part) => part !== '')
  return new Map(
    parts.map((part) => {
      const [name = '', value = ''] = part.split(/=(.*)/s)
      return [[...new URLSearchParams(name).keys()][0] ?? name, value]
    }),
  )
}
