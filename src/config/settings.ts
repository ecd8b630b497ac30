import { z } from 'zod'
import {
  amountsByCurrency,
  apiKey,
  choice,
  cidrs,
  databaseSchema,
  databaseUrl,
  list,
  responseCode,
  responseCodes,
  text,
  timeZone,
  trueOrFalse,
  webAddress,
  webOrigin,
  wholeNumber,
} from './setting-types.ts'

const SIGNING_SECRET = text({ must: 'not be empty', example: '<the signing secret>' })

const DATA_KEY = text({
  form: /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
  must: 'be 32 bytes in Base64',
  example: '<the output of: openssl rand -base64 32>',
})

/** What an account has, alone in the environment or among others in a file. */
export const ACCOUNT = {
  merchantCode: text({
    form: /^[\x21-\x7e]{1,64}$/,
    must: 'be the merchant code issued by the gateway',
    example: 'SHOP1',
  }),
  secret: SIGNING_SECRET,
  previousSecret: SIGNING_SECRET.optional(),
  // A token that can be sent in a header unchanged (RFC 6750, 2.1).
  accessToken: text({
    form: /^[\x21-\x7e]{1,8192}$/,
    must: 'be a token without spaces',
    example: '<the access token>',
  }).optional(),
  tokenUrl: webAddress('https://gateway.example/v2/auth/oauth2/token'),
  clientId: text({
    form: /^[\x20-\x7e]{1,256}$/,
    must: 'be a client id',
    example: 'shop1',
  }).optional(),
  clientSecret: text({
    form: /^[\x20-\x7e]{1,1024}$/,
    must: 'be 1 to 1024 printable ASCII characters',
    example: '<the client secret>',
  }).optional(),
  // RFC 6749, 3.3.
  tokenScope: text({
    form: /^[\x21-\x7e]+( [\x21-\x7e]+)*$/,
    must: 'be scopes separated by single spaces',
    example: 'cards:read',
  }).optional(),
}

const names = (example: string) => list('[A-Za-z0-9]+', 'names without the prefix', example)

/** Every setting: its type, default, and an example for error messages. Times are in milliseconds. */
export const SETTINGS = {
  HOST: text({ example: '127.0.0.1' }).default('127.0.0.1'),
  PORT: wholeNumber({ max: 65_535 }).default(3000),
  METRICS_HOST: text({ example: '127.0.0.1' }).optional(),
  METRICS_PORT: wholeNumber({ max: 65_535 }).optional(),
  ROLE: choice(['all', 'web', 'worker']).default('all'),
  DATABASE_URL: databaseUrl(),
  DATABASE_SCHEMA: databaseSchema().default('public'),
  DATA_DIR: text({ example: '.data' }).default('.data'),
  DATABASE_POOL: wholeNumber({ min: 2, max: 1_000 }).default(10),
  MIGRATE: choice(['auto', 'off']).default('auto'),
  DEMO: trueOrFalse(),
  DRAIN_MS: wholeNumber({ max: 60_000 }).default(0),
  LOG_LEVEL: choice(['info', 'trace', 'debug', 'warn', 'error', 'fatal', 'silent']).default('info'),
  GATEWAY_BASE_URL: webAddress('https://gateway.example'),
  GATEWAY_PAYGATE_PATH: text({
    form: /^\/[^?#\s]*$/,
    must: 'be a path that starts with /',
    example: '/api/v1/paygate/svcpay',
  }).default('/api/v1/paygate/svcpay'),
  GATEWAY_FIELD_PREFIX: text({
    form: /^[A-Za-z][A-Za-z0-9]*$/,
    must: 'start with a letter and contain only letters and digits',
    example: 'svc',
  }).default('svc'),
  GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode.optional(),
  GATEWAY_SECRET: SIGNING_SECRET.optional(),
  GATEWAY_SECRET_PREVIOUS: ACCOUNT.previousSecret,
  MERCHANTS_FILE: text({ example: '/etc/ipn-processor/merchants.json' }).optional(),
  GATEWAY_ACCESS_TOKEN: ACCOUNT.accessToken,
  GATEWAY_TOKEN_URL: ACCOUNT.tokenUrl,
  GATEWAY_CLIENT_ID: ACCOUNT.clientId,
  GATEWAY_CLIENT_SECRET: ACCOUNT.clientSecret,
  GATEWAY_TOKEN_SCOPE: ACCOUNT.tokenScope,
  GATEWAY_CARDS_SUCCESS_CODE: responseCode().default('1'),
  GATEWAY_CARDS_NOT_FOUND_CODES: responseCodes('404').default([]),
  GATEWAY_CARDS_FIRST_PAGE: wholeNumber({ max: 1 }).default(1),
  GATEWAY_CARDS_MAX_PAGE_SIZE: wholeNumber({ min: 1, max: 10_000 }).default(100),
  CARDS_CACHE_MS: wholeNumber({ max: 86_400_000 }).default(0),
  GATEWAY_ENCODING: choice(['json', 'form']).default('json'),
  GATEWAY_TIMEOUT_MS: wholeNumber({ min: 1, max: 600_000 }).default(10_000),
  GATEWAY_MAX_CONCURRENCY: wholeNumber({ min: 1, max: 1_000 }).default(16),
  GATEWAY_RATE_PER_S: wholeNumber({ max: 100_000 }).default(0),
  GATEWAY_ALLOW_HTTP: trueOrFalse().default(false),
  GATEWAY_REFUND_HASH_EXCLUDE: names('RequestID').default(['RequestID']),
  IPN_HASH_EXCLUDE: names('TransAmount,ExtData').default(['TransAmount', 'ExtData']),
  IPN_KNOWN_MEMBERS: names('PromotionCode,BankCode').default([]),
  IPN_SIGNATURE: choice(['required', 'optional', 'off']).default('required'),
  IPN_ACCEPT_GET: trueOrFalse().default(false),
  IPN_ALLOW_CIDRS: cidrs(),
  TRUSTED_PROXIES: cidrs().default([]),
  API_KEY: apiKey().optional(),
  API_KEY_GRACE_MS: wholeNumber().default(3_600_000),
  SYNC_BACKOFF_MS: wholeNumber({ min: 1 }).default(1_000),
  SYNC_BACKOFF_MAX_MS: wholeNumber({ min: 1 }).default(3_600_000),
  SYNC_MAX_ATTEMPTS: wholeNumber({ min: 1 }).default(30),
  SYNC_MIN_GAP_MS: wholeNumber({ max: 3_600_000 }).default(50),
  SYNC_MAX_GAP_MS: wholeNumber({ max: 3_600_000 }).default(1_000),
  SYNC_REPOLL_MS: wholeNumber({ min: 1 }).default(5_000),
  SYNC_REPOLL_MAX_MS: wholeNumber({ min: 1 }).default(3_600_000),
  SYNC_REPOLL_FOR_MS: wholeNumber().default(259_200_000),
  RECONCILE_FINAL_FOR_MS: wholeNumber().default(86_400_000),
  RETENTION_DAYS: wholeNumber({ min: 1, max: 36_500 }).default(400),
  GATEWAY_REFUND_DEDUPES: trueOrFalse(),
  // 19 may mean that the gateway has the request already.
  GATEWAY_REFUND_FINAL_CODES: responseCodes('31,32,33,34,37', ['0', '9', '19', '99']).default(
    '31,32,33,34,37'.split(','),
  ),
  IPN_REFUND_FINAL_CODES: responseCodes('-1,1,18,30,31,32,33,34,37', ['0', '9', '99']).default(
    '-1,1,18,30,31,32,33,34,37'.split(','),
  ),
  REFUNDS_ENABLED: trueOrFalse().default(true),
  REFUND_BACKOFF_MS: wholeNumber({ min: 1 }).default(2_000),
  REFUND_BACKOFF_MAX_MS: wholeNumber({ min: 1 }).default(900_000),
  REFUND_RESOLVE_FOR_MS: wholeNumber({ min: 1 }).default(259_200_000),
  REFUND_CONFIRM_FAILED_MS: wholeNumber().default(600_000),
  REFUND_RESEND_AFTER_MS: wholeNumber().default(30_000),
  REFUND_RESEND_FOR_MS: wholeNumber().default(3_600_000),
  REFUND_SEND_WITHIN_MS: wholeNumber({ min: 1 }).default(604_800_000),
  REFUND_APPROVAL_ABOVE: amountsByCurrency().default([]),
  REFUND_APPROVAL_WITHIN_MS: wholeNumber({ min: 1 }).default(259_200_000),
  REFUND_RECEIVER_CHECK: choice(['lenient', 'strict']).default('lenient'),
  CAPS_TIME_ZONE: timeZone().default('UTC'),
  CONSOLE: choice(['on', 'off']).default('on'),
  CONSOLE_BASE_URL: webOrigin('https://console.shop.example'),
  DATA_ENCRYPTION_KEY: DATA_KEY.optional(),
  DATA_ENCRYPTION_KEY_PREVIOUS: DATA_KEY.optional(),
  WEBHOOK_ALLOW_PRIVATE: trueOrFalse(),
  OTEL_EXPORTER_OTLP_ENDPOINT: webAddress('http://127.0.0.1:4318'),
  OTEL_TRACES_SAMPLER: choice([
    'parentbased_always_on',
    'parentbased_traceidratio',
    'parentbased_always_off',
    'always_on',
    'traceidratio',
    'always_off',
  ]).optional(),
  // Only checked: the OpenTelemetry SDK reads it itself.
  OTEL_TRACES_SAMPLER_ARG: text({
    form: /^(0(\.\d+)?|1(\.0+)?)$/,
    must: 'be a number from 0 to 1',
    example: '0.1',
  }).optional(),
  SIGNING_SECRET: SIGNING_SECRET.optional(),
  SANDBOX_HOST: text({ example: '127.0.0.1' }).default('127.0.0.1'),
  SANDBOX_PORT: wholeNumber({ max: 65_535 }).default(4010),
  SANDBOX_IPN_URL: webAddress('http://127.0.0.1:3000/ipn').default('http://127.0.0.1:3000/ipn'),
  SANDBOX_REFUND_MS: wholeNumber().default(500),
}

export type SettingName = keyof typeof SETTINGS
export type Settings = z.infer<z.ZodObject<typeof SETTINGS>>
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Settings that hold a secret. Their values are never printed, not even when they are invalid.
 */
export const SECRET_SETTINGS: readonly SettingName[] = [
  'DATABASE_URL',
  'GATEWAY_SECRET',
  'GATEWAY_SECRET_PREVIOUS',
  'GATEWAY_ACCESS_TOKEN',
  'GATEWAY_CLIENT_SECRET',
  'API_KEY',
  'DATA_ENCRYPTION_KEY',
  'DATA_ENCRYPTION_KEY_PREVIOUS',
  'SIGNING_SECRET',
]

/**
 * Settings that `NAME_FILE` reads from a file: the secrets, and the log level, since the environment of a running process
 * does not change.
 */
export const FILE_SETTINGS: readonly SettingName[] = [...SECRET_SETTINGS, 'LOG_LEVEL']

/** Returns the names of all settings, in the order of their definition, without any `NAME_FILE`. */
export function listSettingNames(): SettingName[] {
  return z.object(SETTINGS).keyof().options
}
