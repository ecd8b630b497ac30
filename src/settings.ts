import { isIP } from 'node:net'
import { z } from 'zod'

export type Cidr = { address: string; prefix: number; family: 'ipv4' | 'ipv6' }

/** Every setting: its form, its default, and an example to show when it is wrong. Times are milliseconds. */
export const SETTINGS = {
  HOST: text({ example: '127.0.0.1' }).default('127.0.0.1'),
  PORT: whole({ max: 65_535 }).default(3000),
  ROLE: choice(['all', 'web', 'worker']).default('all'),
  DATABASE_URL: databaseUrl(),
  DATA_DIR: text({ example: '.data' }).default('.data'),
  DATABASE_POOL: whole({ min: 2, max: 1_000 }).default(10),
  DEMO: onOff(),
  LOG_LEVEL: choice(['info', 'trace', 'debug', 'warn', 'error', 'fatal', 'silent']).default('info'),
  GATEWAY_BASE_URL: webAddress('https://gateway.example'),
  GATEWAY_PAYGATE_PATH: text({
    form: /^\/[^?#\s]*$/,
    must: 'be a path that starts with /',
    example: '/api/v1/paygate/svcpay',
  }).default('/api/v1/paygate/svcpay'),
  GATEWAY_FIELD_PREFIX: text({
    form: /^[A-Za-z][A-Za-z0-9]*$/,
    must: 'be letters and digits',
    example: 'svc',
  }).default('svc'),
  GATEWAY_MERCHANT_CODE: merchantCode().optional(),
  GATEWAY_SECRET: secret().optional(),
  GATEWAY_SECRET_PREVIOUS: secret().optional(),
  MERCHANTS_FILE: text({ example: '/etc/ipn-processor/merchants.json' }).optional(),
  GATEWAY_ACCESS_TOKEN: accessToken().optional(),
  GATEWAY_TOKEN_URL: webAddress('https://gateway.example/v2/auth/oauth2/token'),
  GATEWAY_CLIENT_ID: clientId().optional(),
  GATEWAY_CLIENT_SECRET: clientSecret().optional(),
  GATEWAY_TOKEN_SCOPE: tokenScope().optional(),
  CARDS_CACHE_MS: whole({ max: 86_400_000 }).default(0),
  GATEWAY_ENCODING: choice(['json', 'form']).default('json'),
  GATEWAY_TIMEOUT_MS: whole({ min: 1, max: 600_000 }).default(10_000),
  GATEWAY_MAX_CONCURRENCY: whole({ min: 1, max: 1_000 }).default(16),
  GATEWAY_RATE_PER_S: whole({ max: 100_000 }).default(0),
  GATEWAY_ALLOW_HTTP: onOff().default(false),
  GATEWAY_REFUND_HASH_EXCLUDE: names('RequestID').default(['RequestID']),
  IPN_HASH_EXCLUDE: names('TransAmount,ExtData').default(['TransAmount', 'ExtData']),
  IPN_SIGNATURE: choice(['required', 'optional', 'off']).default('required'),
  IPN_ACCEPT_GET: onOff().default(false),
  IPN_ALLOW_CIDRS: cidrs(),
  TRUSTED_PROXIES: cidrs().default([]),
  API_KEY: text({
    form: /^[\x21-\x7e]{32,256}$/,
    must: 'be 32 to 256 visible characters',
    example: '<the output of: openssl rand -hex 32>',
  }).optional(),
  SYNC_BACKOFF_MS: whole({ min: 1 }).default(1_000),
  SYNC_BACKOFF_MAX_MS: whole({ min: 1 }).default(3_600_000),
  SYNC_MAX_ATTEMPTS: whole({ min: 1 }).default(30),
  SYNC_MIN_GAP_MS: whole({ max: 3_600_000 }).default(50),
  SYNC_MAX_GAP_MS: whole({ max: 3_600_000 }).default(1_000),
  SYNC_REPOLL_MS: whole({ min: 1 }).default(5_000),
  SYNC_REPOLL_MAX_MS: whole({ min: 1 }).default(3_600_000),
  SYNC_REPOLL_FOR_MS: whole().default(259_200_000),
  RECONCILE_FINAL_FOR_MS: whole().default(86_400_000),
  RETENTION_DAYS: whole({ min: 1, max: 36_500 }).default(400),
  GATEWAY_REFUND_DEDUPES: onOff().default(true),
  REFUNDS_ENABLED: onOff().default(true),
  REFUND_BACKOFF_MS: whole({ min: 1 }).default(2_000),
  REFUND_BACKOFF_MAX_MS: whole({ min: 1 }).default(900_000),
  REFUND_RESOLVE_FOR_MS: whole({ min: 1 }).default(259_200_000),
  REFUND_CONFIRM_FAILED_MS: whole().default(600_000),
  REFUND_RESEND_AFTER_MS: whole().default(30_000),
  DATA_ENCRYPTION_KEY: text({
    form: /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
    must: 'be 32 bytes in Base64',
    example: '<the output of: openssl rand -base64 32>',
  }).optional(),
  WEBHOOK_ALLOW_PRIVATE: onOff().default(false),
  OTEL_EXPORTER_OTLP_ENDPOINT: webAddress('http://127.0.0.1:4318'),
  OTEL_TRACES_SAMPLER: choice([
    'parentbased_always_on',
    'parentbased_traceidratio',
    'parentbased_always_off',
    'always_on',
    'traceidratio',
    'always_off',
  ]).optional(),
  OTEL_TRACES_SAMPLER_ARG: share(),
  SIGNING_SECRET: secret().optional(),
  SANDBOX_PORT: whole({ max: 65_535 }).default(4010),
  SANDBOX_IPN_URL: webAddress('http://127.0.0.1:3000/ipn').default('http://127.0.0.1:3000/ipn'),
  SANDBOX_REFUND_MS: whole().default(500),
}

export type SettingName = keyof typeof SETTINGS

/** Their values are never printed, not even when they are wrong. */
const SECRETS: readonly string[] = [
  'DATABASE_URL',
  'GATEWAY_SECRET',
  'GATEWAY_SECRET_PREVIOUS',
  'GATEWAY_ACCESS_TOKEN',
  'GATEWAY_CLIENT_SECRET',
  'API_KEY',
  'DATA_ENCRYPTION_KEY',
  'SIGNING_SECRET',
] satisfies SettingName[]

type Environment = Readonly<Record<string, string | undefined>>
export type Settings = z.infer<ReturnType<typeof buildSchema>>

/**
 * Parses the environment; an empty value counts as unset. `problems` holds one line for each setting
 * that is wrong; `settings` has the default in its place, so that everything else can be checked too.
 */
export function parseSettings(env: Environment): {
  settings: Settings
  problems: ReadonlyMap<string, string>
} {
  const schema = buildSchema()
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
  const parsed = schema.safeParse(given)
  if (parsed.success) return { settings: parsed.data, problems: new Map() }
  const problems = new Map<string, string>()
  for (const { path, message } of parsed.error.issues) {
    const name = String(path[0])
    const [what, example] = message.split('; ')
    const shown = SECRETS.includes(name) ? '' : ` (it is ${quote(given[name] ?? '')})`
    problems.set(name, `${name} ${what}${shown}; for example ${name}=${example}`)
  }
  const rest = Object.entries(given).filter(([name]) => !problems.has(name))
  return { settings: schema.parse(Object.fromEntries(rest)), problems }
}

/** A value on one line, cut, without the parts of an address that can hold a password or a token. */
function quote(value: string): string {
  const bare = value.replace(/^.*@/s, '…@').replace(/[?#].*$/s, '?…')
  return JSON.stringify(bare.slice(0, 100))
}

function buildSchema() {
  return z.object(SETTINGS)
}

export function merchantCode() {
  return text({
    form: /^[\x21-\x7e]{1,64}$/,
    must: 'be the code the gateway issued',
    example: 'SHOP1',
  })
}

export function secret() {
  return text({ must: 'not be empty', example: '<the signing secret>' })
}

/** Fit for a header as it is (RFC 6750, 2.1). */
export function accessToken() {
  const form = /^[\x21-\x7e]{1,8192}$/
  return text({ form, must: 'be a token without spaces', example: '<the access token>' })
}

export function clientId() {
  return text({ form: /^[\x20-\x7e]{1,256}$/, must: 'be the id of a client', example: 'shop1' })
}

export function clientSecret() {
  const form = /^[\x20-\x7e]{1,1024}$/
  return text({ form, must: 'be 1 to 1024 plain characters', example: '<the client secret>' })
}

/** RFC 6749, 3.3. */
export function tokenScope() {
  const form = /^[\x21-\x7e]+( [\x21-\x7e]+)*$/
  return text({ form, must: 'be words joined by single spaces', example: 'cards:read' })
}

function text({
  form = /./,
  must = 'be a text',
  example,
}: {
  form?: RegExp
  must?: string
  example: string
}) {
  return z.string().regex(form, `must ${must}; ${example}`)
}

function whole({ min = 0, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {}) {
  const upTo = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  const message = `must be a whole number ${upTo}; ${Math.max(min, Math.min(max, 1_000))}`
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
}

function choice<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, `must be one of ${values.join(', ')}; ${values[0]}`)
}

function onOff() {
  return z
    .enum(['true', 'false'], 'must be true or false; true')
    .transform((value) => value === 'true')
    .optional()
}

/** Read by the SDK as it stands: here it is only checked. */
function share() {
  return z
    .string()
    .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'must be a number from 0 to 1; 0.1')
    .optional()
}

function databaseUrl() {
  return z
    .string()
    .refine(
      (value) => /^postgres(ql)?:\/\//i.test(value) && URL.canParse(value),
      'must be an address that starts with postgres://; postgres://user:password@db.internal:5432/ipn',
    )
    .optional()
}

/** What stands in an address beside host and path would silently never be used. */
export function webAddress(example: string) {
  return z
    .string()
    .refine(
      isWebAddress,
      `must be an address that starts with https:// or http://, without user, query and fragment; ${example}`,
    )
    .optional()
}

function isWebAddress(value: string): boolean {
  if (!/^https?:\/\/[^?#]*$/i.test(value) || !URL.canParse(value)) return false
  const { username, password } = new URL(value)
  return username === '' && password === ''
}

function names(example: string) {
  return z
    .string()
    .regex(
      /^[A-Za-z0-9]+(,[A-Za-z0-9]+)*$/,
      `must be names joined by commas, without prefix, or none; ${example}`,
    )
    .transform((value) => (value === 'none' ? [] : value.split(',')))
}

function cidrs() {
  return z
    .string()
    .transform((value, ctx): Cidr[] =>
      value.split(',').flatMap((part) => {
        const cidr = parseCidr(part.trim())
        if (cidr) return [cidr]
        ctx.addIssue('must be networks joined by commas; 203.0.113.0/24,2001:db8::/32')
        return []
      }),
    )
    .optional()
}

function parseCidr(value: string): Cidr | undefined {
  const [address = '', length, ...others] = value.split('/')
  const version = isIP(address)
  if (version === 0 || others.length > 0 || (length !== undefined && !/^\d{1,3}$/.test(length)))
    return undefined
  const bits = version === 4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  return prefix <= bits ? { address, prefix, family: `ipv${version === 4 ? 4 : 6}` } : undefined
}
