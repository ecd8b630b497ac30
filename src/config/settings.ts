import { z } from 'zod'
import {
  amountsByCurrency,
  choice,
  cidrs,
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

const SIGNING_SECRET = text('not be empty; <the signing secret>')

const DATA_KEY = text(
  'be 32 bytes in Base64; <the output of: openssl rand -base64 32>',
  /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/,
)

/** The members of an account, whether alone in the environment or one of several in a file. */
export const ACCOUNT = {
  // `*` stands for all accounts.
  merchantCode: text(
    'be the merchant code issued by the gateway; SHOP1',
    /^(?!\*$)[\x21-\x7e]{1,64}$/,
  ),
  secret: SIGNING_SECRET,
  previousSecret: SIGNING_SECRET.optional(),
  // Can be sent in a header unchanged (RFC 6750, 2.1).
  accessToken: text(
    'be a token without spaces; <the access token>',
    /^[\x21-\x7e]{1,8192}$/,
  ).optional(),
  tokenUrl: webAddress('https://gateway.example/v2/auth/oauth2/token'),
  clientId: text('be a client id; shop1', /^[\x20-\x7e]{1,256}$/).optional(),
  clientSecret: text(
    'be 1 to 1024 printable ASCII characters; <the client secret>',
    /^[\x20-\x7e]{1,1024}$/,
  ).optional(),
  // RFC 6749, 3.3.
  tokenScope: text(
    'be scopes separated by single spaces; cards:read',
    /^[\x21-\x7e]+( [\x21-\x7e]+)*$/,
  ).optional(),
}

const names = (example: string) => list('[A-Za-z0-9]+', 'names without the prefix', example)

/** Every setting, with its type, its default, and an example for error messages. Times are in milliseconds. */
export const SETTINGS = {
  HOST: text('be text; 127.0.0.1').default('127.0.0.1'),
  PORT: wholeNumber(0, 65_535).default(3000),
  METRICS_HOST: text('be text; 127.0.0.1').optional(),
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  ROLE: choice(['all', 'web', 'worker']).default('all'),
  DATABASE_URL: databaseUrl(),
  // A name that needs no quotes. Postgres reserves `pg_…`.
  DATABASE_SCHEMA: text(
    'be a name of small letters, digits and _, of at most 40 characters, that does not begin with a digit or pg_; cell1',
    /^(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,39}$/,
  ).default('public'),
  DATA_DIR: text('be text; .data').default('.data'),
  DATABASE_POOL: wholeNumber(2, 1_000).default(10),
  MIGRATE: choice(['auto', 'off']).default('auto'),
  DEMO: trueOrFalse(),
  DRAIN_MS: wholeNumber(0, 60_000).default(0),
  LOG_LEVEL: choice(['info', 'trace', 'debug', 'warn', 'error', 'fatal', 'silent']).default('info'),
  GATEWAY_BASE_URL: webAddress('https://gateway.example'),
  GATEWAY_PAYGATE_PATH: text(
    'be a path that starts with /; /api/v1/paygate/svcpay',
    /^\/[^?#\s]*$/,
  ).default('/api/v1/paygate/svcpay'),
  GATEWAY_FIELD_PREFIX: text(
    'start with a letter and contain only letters and digits; svc',
    /^[A-Za-z][A-Za-z0-9]*$/,
  ).default('svc'),
  GATEWAY_MERCHANT_CODE: ACCOUNT.merchantCode.optional(),
  GATEWAY_SECRET: SIGNING_SECRET.optional(),
  GATEWAY_SECRET_PREVIOUS: ACCOUNT.previousSecret,
  MERCHANTS_FILE: text(
    'be text; /etc/ipn-processor/merchants.json with [{"merchantCode":"SHOP1","secret":"<the signing secret>"}]',
  ).optional(),
  GATEWAY_ACCESS_TOKEN: ACCOUNT.accessToken,
  GATEWAY_TOKEN_URL: ACCOUNT.tokenUrl,
  GATEWAY_CLIENT_ID: ACCOUNT.clientId,
  GATEWAY_CLIENT_SECRET: ACCOUNT.clientSecret,
  GATEWAY_TOKEN_SCOPE: ACCOUNT.tokenScope,
  GATEWAY_CARDS_SUCCESS_CODE: responseCode().default('1'),
  GATEWAY_CARDS_NOT_FOUND_CODES: responseCodes('404').default([]),
  GATEWAY_CARDS_FIRST_PAGE: wholeNumber(0, 1).default(1),
  GATEWAY_CARDS_MAX_PAGE_SIZE: wholeNumber(1, 10_000).default(100),
  CARDS_CACHE_MS: wholeNumber(0, 86_400_000).default(0),
  GATEWAY_ENCODING: choice(['json', 'form']).default('json'),
  GATEWAY_TIMEOUT_MS: wholeNumber(1, 600_000).default(10_000),
  GATEWAY_MAX_CONCURRENCY: wholeNumber(1, 1_000).default(16),
  GATEWAY_RATE_PER_S: wholeNumber(0, 100_000).default(0),
  GATEWAY_ALLOW_HTTP: trueOrFalse().default(false),
  GATEWAY_REFUND_HASH_EXCLUDE: names('RequestID').default(['RequestID']),
  IPN_HASH_EXCLUDE: names('TransAmount,ExtData').default(['TransAmount', 'ExtData']),
  IPN_KNOWN_MEMBERS: names('PromotionCode,BankCode').default([]),
  IPN_SIGNATURE: choice(['required', 'optional', 'off']).default('required'),
  IPN_ACCEPT_GET: trueOrFalse().default(false),
  IPN_ALLOW_CIDRS: cidrs(),
  TRUSTED_PROXIES: cidrs().default([]),
  API_KEY: text(
    'be 32 to 256 visible ASCII characters without spaces; <the output of: openssl rand -hex 32>',
    /^[\x21-\x7e]{32,256}$/,
  ).optional(),
  API_KEY_GRACE_MS: wholeNumber().default(3_600_000),
  SYNC_BACKOFF_MS: wholeNumber(1).default(1_000),
  SYNC_BACKOFF_MAX_MS: wholeNumber(1).default(3_600_000),
  SYNC_MAX_ATTEMPTS: wholeNumber(1).default(30),
  SYNC_MIN_GAP_MS: wholeNumber(0, 3_600_000).default(50),
  SYNC_MAX_GAP_MS: wholeNumber(0, 3_600_000).default(1_000),
  SYNC_REPOLL_MS: wholeNumber(1).default(5_000),
  SYNC_REPOLL_MAX_MS: wholeNumber(1).default(3_600_000),
  SYNC_REPOLL_FOR_MS: wholeNumber().default(259_200_000),
  RECONCILE_FINAL_FOR_MS: wholeNumber().default(86_400_000),
  RETENTION_DAYS: wholeNumber(1, 36_500).default(400),
  GATEWAY_REFUND_DEDUPES: trueOrFalse(),
  // With 19 the gateway may already have the request.
  GATEWAY_REFUND_FINAL_CODES: responseCodes('31,32,33,34,37', ['0', '9', '19', '99']).default(
    '31,32,33,34,37'.split(','),
  ),
  IPN_REFUND_FINAL_CODES: responseCodes('-1,1,18,30,31,32,33,34,37', ['0', '9', '99']).default(
    '-1,1,18,30,31,32,33,34,37'.split(','),
  ),
  REFUNDS_ENABLED: trueOrFalse().default(true),
  REFUND_BACKOFF_MS: wholeNumber(1).default(2_000),
  REFUND_BACKOFF_MAX_MS: wholeNumber(1).default(900_000),
  REFUND_RESOLVE_FOR_MS: wholeNumber(1).default(259_200_000),
  REFUND_CONFIRM_FAILED_MS: wholeNumber().default(600_000),
  REFUND_RESEND_AFTER_MS: wholeNumber().default(30_000),
  // For an attempt that `forbidResends` dates to 1970, this time has to be over.
  REFUND_RESEND_FOR_MS: wholeNumber(0, 2_592_000_000).default(3_600_000),
  REFUND_SEND_WITHIN_MS: wholeNumber(1).default(604_800_000),
  REFUND_APPROVAL_ABOVE: amountsByCurrency().default([]),
  REFUND_APPROVAL_WITHIN_MS: wholeNumber(1).default(259_200_000),
  REFUND_RECEIVER_CHECK: choice(['lenient', 'strict']).default('lenient'),
  CAPS_TIME_ZONE: timeZone().default('UTC'),
  CONSOLE: choice(['on', 'off']).default('on'),
  CONSOLE_BASE_URL: webOrigin('https://console.shop.example'),
  DATA_ENCRYPTION_KEY: DATA_KEY.optional(),
  DATA_ENCRYPTION_KEY_PREVIOUS: DATA_KEY.optional(),
  WEBHOOK_ALLOW_PRIVATE: trueOrFalse(),
  OTEL_EXPORTER_OTLP_ENDPOINT: webAddress('http://127.0.0.1:4318'),
  SIGNING_SECRET: SIGNING_SECRET.optional(),
  SANDBOX_HOST: text('be text; 127.0.0.1').default('127.0.0.1'),
  SANDBOX_PORT: wholeNumber(0, 65_535).default(4010),
  SANDBOX_IPN_URL: webAddress('http://127.0.0.1:3000/ipn').default('http://127.0.0.1:3000/ipn'),
  SANDBOX_REFUND_MS: wholeNumber().default(500),
}

export type SettingName = keyof typeof SETTINGS
export type Settings = z.infer<z.ZodObject<typeof SETTINGS>>
export type Environment = Readonly<Record<string, string | undefined>>

/** Settings whose values are never printed, not even invalid ones. `NAME_FILE` reads such a value from a file. */
export const SECRET_SETTINGS: readonly SettingName[] = listSettingNames().filter((name) =>
  /^DATABASE_URL$|_(SECRET|KEY|ACCESS_TOKEN)(_PREVIOUS)?$/.test(name),
)

/** The names of all settings in the order of their definition, without the `NAME_FILE` forms. */
export function listSettingNames(): SettingName[] {
  return z.object(SETTINGS).keyof().options
}
