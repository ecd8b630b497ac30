import type { SettingName } from '../../src/config/settings.ts'

/**
 * What each setting does, by section of the reference. Types, ranges and defaults come from `SETTINGS`; a setting that is
 * missing here stops `npm run docs`.
 */
export const SECTIONS: Record<string, Partial<Record<SettingName, string>>> = {
  Process: {
    HOST: 'The address at which the service listens',
    PORT: 'The port of the service',
    METRICS_PORT:
      'A listener of its own for `/metrics`, `/healthz` and `/readyz`. `PORT` then answers `/metrics` with 404; health stays there as well',
    METRICS_HOST: 'The address of that listener; `HOST` if unset',
    ROLE: '`web` serves HTTP only. `worker` does the background work, and serves its health and metrics only',
    DEMO: 'Switches [demo mode](operations.md#settings) on or off; if unset, it follows from the other settings',
    DRAIN_MS:
      'How long the process goes on serving after `SIGTERM` while `/readyz` is 503, see [Stopping](operations.md#stopping)',
    LOG_LEVEL: 'The least level that is logged',
    API_KEY:
      'The first API key, with every scope: `openssl rand -hex 32`. Changing it [rotates that key](operations.md#api-keys)',
    API_KEY_GRACE_MS: 'How long the previous text of `API_KEY` stays valid after a change',
    DATA_ENCRYPTION_KEY:
      'Encrypts the data keys under which receivers and webhook secrets are stored: `openssl rand -base64 32`. Required outside demo mode, see [The encryption key](operations.md#the-encryption-key)',
    DATA_ENCRYPTION_KEY_PREVIOUS: 'The key before, while the key is being changed',
    TRUSTED_PROXIES:
      'Networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed, and to which the bound on connections of one network does not apply. Name the address of your proxy and no more. The first such header from anywhere else is warned of in the log',
    RETENTION_DAYS:
      'Events, notifications, records of calls and audit entries older than this are removed',
    CONSOLE: '`off`: this process serves no [console](console.md)',
    CONSOLE_BASE_URL:
      'The origin at which people open the console, for the sign-in links that the command line prints. Https, unless it is this machine; if unset, `http://localhost:PORT`',
    WEBHOOK_ALLOW_PRIVATE:
      'Allows webhooks to loopback and private networks, also over plain http. If unset, a demo whose `HOST` is loopback allows loopback',
  },
  Database: {
    DATABASE_URL:
      'The Postgres server; if unset, an embedded one is started. Set `sslmode=verify-full`. A primary and its standbys: `postgres://user:password@db1:5432,db2:5432/ipn?target_session_attrs=primary`, see [A standby, and failover](operations.md#a-standby-and-failover). Besides these, `sslrootcert` and `application_name` may be set; other parameters are refused, because they could undo what a session needs',
    DATABASE_SCHEMA:
      'The schema that has every table of this installation. Others in the same database have a schema each, and never see, wake or block one another',
    DATA_DIR: 'The folder of the embedded database',
    MIGRATE:
      '`auto`: a start applies pending migrations. `off`: it applies none, and is refused while one is pending, see [Upgrading](operations.md#upgrading)',
    DATABASE_POOL:
      'Connections of a process: 70 % for notifications, queries and writes, 30 % for lists and other reads. Two more look up keys and single objects, and listen for notifications of the database',
  },
  Gateway: {
    GATEWAY_BASE_URL: 'The origin of the gateway: https, unless the host is loopback',
    GATEWAY_ALLOW_HTTP: 'Allows plain http to any host',
    GATEWAY_PAYGATE_PATH: 'The path of the operations of the gateway',
    GATEWAY_FIELD_PREFIX: 'The prefix of field names: `svc` gives `svc_Command`',
    GATEWAY_MERCHANT_CODE: 'The merchant account',
    GATEWAY_SECRET: 'The signing secret of the account',
    GATEWAY_SECRET_PREVIOUS: 'Also accepted on notifications, while the gateway changes the secret',
    MERCHANTS_FILE:
      'Several accounts: JSON `[{"merchantCode","secret","previousSecret"?}]`, each with `accessToken`, or with `clientId`, `clientSecret`, `tokenUrl`? and `tokenScope`?, if it has cards',
    GATEWAY_ENCODING: 'How requests are encoded',
    GATEWAY_TIMEOUT_MS: 'For a whole call',
    GATEWAY_MAX_CONCURRENCY: 'Calls in flight of a process. Card reads have as many of their own',
    GATEWAY_RATE_PER_S:
      'Calls per second of each merchant account, over all processes; `0` sets no limit. Card reads with a shared token count for no account',
  },
  'Virtual cards': {
    GATEWAY_ACCESS_TOKEN:
      'The access token as it was issued. With several accounts, all of them share it',
    GATEWAY_CLIENT_ID: 'Or a client for which tokens are fetched (OAuth 2.0, client credentials)',
    GATEWAY_CLIENT_SECRET: 'The secret of that client',
    GATEWAY_TOKEN_URL: 'Where tokens are fetched; if unset, `/v2/auth/oauth2/token` of the gateway',
    GATEWAY_TOKEN_SCOPE: 'The scope for which tokens are fetched',
    GATEWAY_CARDS_SUCCESS_CODE:
      'The `code` with which this gateway shows cards; any other is a refusal',
    GATEWAY_CARDS_NOT_FOUND_CODES:
      'Values of `code` that mean that there is no such card, as HTTP 404 does',
    GATEWAY_CARDS_FIRST_PAGE: 'The first `pageIndex` of the gateway, 0 or 1',
    GATEWAY_CARDS_MAX_PAGE_SIZE: 'The largest `pageSize` that is passed on',
    CARDS_CACHE_MS: 'The maximum age of a card that is shown; `0` reads it every time',
  },
  Notifications: {
    IPN_SIGNATURE: '`optional` accepts a missing hash but never a wrong one; `off` checks none',
    IPN_HASH_EXCLUDE:
      'Names left out of the hash of a payment notification, and not read; `none` for none',
    IPN_KNOWN_MEMBERS:
      'Further members that the gateway signs in notifications, without prefix. A notification with other members leads to a query at most',
    IPN_ACCEPT_GET: 'Accepts notifications as query strings',
    IPN_ALLOW_CIDRS: 'Networks that may notify; others get 403',
  },
  Sync: {
    SYNC_BACKOFF_MS: 'The pause after the first failed query; it doubles',
    SYNC_BACKOFF_MAX_MS: 'The longest pause after a failed query',
    SYNC_MAX_ATTEMPTS: 'Failed queries in a row after which a transaction is abandoned',
    SYNC_MIN_GAP_MS: 'The gap between queries in a burst of notifications; it doubles',
    SYNC_MAX_GAP_MS: 'The longest of these gaps',
    SYNC_REPOLL_MS: 'The first gap between queries while something is open; it grows',
    SYNC_REPOLL_MAX_MS: 'The longest gap between queries while something is open',
    SYNC_REPOLL_FOR_MS: 'For how long an open transaction is queried before it is abandoned',
    RECONCILE_FINAL_FOR_MS: 'A final transaction is checked once more after this time; `0` never',
  },
  Refunds: {
    GATEWAY_REFUND_DEDUPES:
      'Required outside demo mode: `true` if the gateway refuses a request id that it has seen. With `false` no refund is sent again once a byte may have left',
    GATEWAY_REFUND_HASH_EXCLUDE: 'Names left out of the hash of a REFUND request; `none` for none',
    GATEWAY_REFUND_FINAL_CODES:
      'Codes of a refused REFUND that may end as `failed`; a refund refused with any other goes to a person. `none` for none',
    IPN_REFUND_FINAL_CODES:
      'Codes of the notification of a refund that may end it as `failed`; a refund notified with any other goes to a person. `none` for none',
    REFUNDS_ENABLED:
      '`false` refuses new refunds, and sends none for the first time; what was sent is completed',
    REFUND_BACKOFF_MS: 'The first gap between checks of a refund that has not ended; it doubles',
    REFUND_BACKOFF_MAX_MS: 'The longest of these gaps',
    REFUND_RESEND_AFTER_MS: 'An unanswered attempt is not repeated before this time',
    REFUND_RESEND_FOR_MS:
      'Nothing is sent again once this time has passed since the first attempt: no gateway remembers request ids for ever',
    REFUND_CONFIRM_FAILED_MS:
      'A refusal is believed only if no money has moved for this long after it. Two answers have to be as far apart wherever two are required, and whoever decided last waits for as long before they decide again alone',
    REFUND_RESOLVE_FOR_MS:
      'After this time a person has to decide a refund whose outcome is unknown',
    REFUND_SEND_WITHIN_MS:
      'A refund that was not sent within this time after its request, or its approval, fails with `not_sent_in_time`',
    REFUND_APPROVAL_ABOVE:
      'Refunds above this amount need the approval of a second person, see [Approval](refunds.md#approval-by-a-second-person). Once it is set, so does any amount in another currency, and in one that is not verified',
    REFUND_APPROVAL_WITHIN_MS:
      'A refund that nobody has approved or declined within this time fails with `approval_expired`',
    REFUND_RECEIVER_CHECK:
      '`lenient` accepts three texts of at most 140 characters as a receiver; `strict` only an account number of 4 to 34 letters and digits, and a SWIFT/BIC code',
    CAPS_TIME_ZONE: 'The time zone whose days the daily caps of keys follow',
  },
  Traces: {
    OTEL_EXPORTER_OTLP_ENDPOINT:
      "Traces are sent to `/v1/traces` below this address, as OTLP over HTTP; if unset, none are made. Sampler and batches are the SDK's own variables, such as `OTEL_TRACES_SAMPLER`: it ignores a wrong value, and `--check` does not look at them",
  },
  'Command line and sandbox': {
    SIGNING_SECRET: 'The secret of `cli sign` and `cli verify`',
    SANDBOX_HOST: 'The address or host name at which the sandbox listens and is asked',
    SANDBOX_PORT: 'The port of the sandbox',
    SANDBOX_IPN_URL: 'Where the sandbox sends notifications',
    SANDBOX_REFUND_MS: 'How long a refund takes at the sandbox',
  },
}
