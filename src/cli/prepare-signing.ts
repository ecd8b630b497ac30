import { readSigningConfig } from '../config/config.ts'
import {
  describeMessageKind,
  detectMessageKind,
  listHashExclusions,
  type MessageKind,
} from '../gateway/message-kinds.ts'
import type { SignatureRule } from '../gateway/signature.ts'
import { type Body, type Input, readBody } from './read-body.ts'
import { UsageError } from './usage-error.ts'

/** The input and environment of a command; only tests replace them. */
export type CommandInput = { input: Input; env?: Readonly<Record<string, string | undefined>> }

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

/**
 * Combines message, options and settings.
 * @throws UsageError if something is missing; ConfigError if a setting is invalid
 */
export async function prepareSigning(
  { input, env }: CommandInput,
  options: SigningOptions,
): Promise<SigningJob> {
  const config = readSigningConfig(env)
  const prefix = options.prefix ?? config.prefix
  const body = await readBody(input)
  requirePrefix(body, prefix)
  const kind = options.as ?? detectMessageKind(body.params, prefix)
  const exclude = readExclude(options.exclude, prefix) ?? listHashExclusions(kind, config)
  const code = body.params[`${prefix}_MerchantCode`]
  const merchantCode = typeof code === 'string' ? code : undefined
  return {
    ...body,
    kind,
    isKindGiven: options.as !== undefined,
    rule: { prefix, exclude },
    excludedBy: options.exclude ? 'by --exclude' : `by the rule for a ${describeMessageKind(kind)}`,
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

function readExclude(names: readonly string[] | undefined, prefix: string) {
  const start = `${prefix}_`
  return names?.map((name) => (name.startsWith(start) ? name.slice(start.length) : name))
}

/**
 * Chooses `SIGNING_SECRET`, or else the secret of the account that the message names. A message need not name
 * the account if only one is configured.
 */
function chooseSecret(
  config: ReturnType<typeof readSigningConfig>,
  merchantCode: string | undefined,
): Pick<SigningJob, 'secret' | 'otherSecrets' | 'accountCode'> {
  const { accounts } = config
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
  const previous = [account?.previousSecret, config.previousSecret].filter(
    (one) => one !== undefined,
  )
  const otherSecrets = [
    ...previous.map((one) => ({
      what: 'with the previous secret, which is accepted on notifications only',
      secret: one,
    })),
    ...accounts.map((one) => ({
      what: `with the secret configured for the account ${one.merchantCode}`,
      secret: one.secret,
    })),
  ]
  return {
    secret,
    otherSecrets: otherSecrets.filter((one) => one.secret !== secret),
    accountCode: account?.merchantCode,
  }
}
