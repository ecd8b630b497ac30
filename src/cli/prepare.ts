import { readSigningConfig } from '../config.ts'
import { detectKind, type Kind, listExcluded, nameKind } from '../gateway/kinds.ts'
import type { SignatureRule } from '../gateway/signature.ts'
import { type Body, type Input, readBody } from './read-body.ts'
import { UsageError } from './usage-error.ts'

/** What stands around a command: replaced in tests, never by anything else. */
export type Surroundings = { input: Input; env?: Readonly<Record<string, string | undefined>> }

export type Options = {
  as?: Kind
  exclude?: readonly string[]
  prefix?: string
}

/** Everything that decides about a hash. */
export type Job = Body & {
  kind: Kind
  /** Whether the kind was told, not found. */
  forced: boolean
  rule: SignatureRule
  /** In words: by which rule names are left out. */
  excludedBy: string
  secret: string
  otherSecrets: { what: string; secret: string }[]
  /** The account that the message belongs to, if it is configured. */
  accountCode: string | undefined
}

/**
 * Brings body, options and settings together.
 * @throws UsageError when something is missing; ConfigError when a setting is wrong
 */
export async function prepare({ input, env }: Surroundings, options: Options): Promise<Job> {
  const config = readSigningConfig(env)
  const prefix = options.prefix ?? config.prefix
  const body = await readBody(input)
  requirePrefix(body, prefix)
  const kind = options.as ?? detectKind(body.params, prefix)
  const exclude = readExclude(options.exclude, prefix) ?? listExcluded(kind, config)
  const code = body.params[`${prefix}_MerchantCode`]
  const merchantCode = typeof code === 'string' ? code : undefined
  return {
    ...body,
    kind,
    forced: options.as !== undefined,
    rule: { prefix, exclude },
    excludedBy: options.exclude ? 'by --exclude' : `by the rule for a ${nameKind(kind)}`,
    ...chooseSecret(config, merchantCode),
  }
}

function requirePrefix({ params }: Body, prefix: string): void {
  const names = Object.keys(params)
  if (names.some((name) => name.startsWith(`${prefix}_`))) return
  const other = names.map((name) => /^([A-Za-z][A-Za-z0-9]*)_/.exec(name)?.[1]).find(Boolean)
  const hint = other ? `; is it --prefix ${other}?` : ''
  throw new UsageError(`no parameter starts with ${prefix}_${hint}`)
}

function readExclude(names: readonly string[] | undefined, prefix: string) {
  const start = `${prefix}_`
  return names?.map((name) => (name.startsWith(start) ? name.slice(start.length) : name))
}

/** `SIGNING_SECRET`, or else that of the account the message names; a message may leave the only one unnamed. */
function chooseSecret(
  config: ReturnType<typeof readSigningConfig>,
  merchantCode: string | undefined,
): Pick<Job, 'secret' | 'otherSecrets' | 'accountCode'> {
  const { accounts } = config
  const account =
    accounts.find((one) => one.merchantCode === merchantCode) ??
    (merchantCode === undefined && accounts.length === 1 ? accounts[0] : undefined)
  const secret = config.secret ?? account?.secret
  if (secret === undefined) {
    const whose =
      merchantCode === undefined
        ? 'the message names no account'
        : 'the account it names is not configured'
    throw new UsageError(`no secret: ${whose}; set SIGNING_SECRET in the environment`)
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
