import { isPlainRemote } from './setting-types.ts'
import type { Settings } from './settings.ts'

/** A rule between settings that are valid on their own: the line that says how it is violated, if it is. */
type Rule = (settings: Settings, demo: boolean) => string | false | undefined

/** Pairs of a setting, the setting it must not be less than, and an example. */
const MINIMA = [
  ['SYNC_BACKOFF_MAX_MS', 'SYNC_BACKOFF_MS', 3_600_000],
  ['REFUND_BACKOFF_MAX_MS', 'REFUND_BACKOFF_MS', 900_000],
  ['SYNC_MAX_GAP_MS', 'SYNC_MIN_GAP_MS', 1_000],
] as const

const RULES: readonly Rule[] = [
  ({ METRICS_HOST, METRICS_PORT }) =>
    METRICS_HOST !== undefined &&
    METRICS_PORT === undefined &&
    'METRICS_PORT is not set, but METRICS_HOST requires it; for example METRICS_PORT=9464',
  ({ HOST, PORT, METRICS_HOST = HOST, METRICS_PORT }) =>
    METRICS_PORT === PORT &&
    doPortsClash(PORT, HOST, METRICS_HOST) &&
    `METRICS_PORT must differ from PORT at the same address, because metrics get a listener of their own (got "${PORT}"); for example METRICS_PORT=9464`,
  ({ HOST, PORT, SANDBOX_HOST, SANDBOX_PORT, GATEWAY_BASE_URL }, demo) =>
    demo &&
    !GATEWAY_BASE_URL &&
    SANDBOX_PORT === PORT &&
    doPortsClash(PORT, HOST, SANDBOX_HOST) &&
    `SANDBOX_PORT must differ from PORT at the same address, because the sandbox gateway gets a listener of its own (got "${PORT}"); for example SANDBOX_PORT=${PORT === 4_010 ? 4_011 : 4_010}`,
  ({ GATEWAY_BASE_URL: base }, demo) =>
    !base &&
    !demo &&
    'GATEWAY_BASE_URL is not set, but is required outside demo mode; for example GATEWAY_BASE_URL=https://gateway.example, or DEMO=true to run the demo on any HOST',
  ({ GATEWAY_BASE_URL: base, GATEWAY_ALLOW_HTTP: allowHttp }) =>
    base !== undefined &&
    !allowHttp &&
    isPlainRemote(new URL(base)) &&
    `GATEWAY_BASE_URL must start with https:// because only TLS authenticates the gateway's answers (got "${base}"); for example GATEWAY_BASE_URL=https://gateway.example, or GATEWAY_ALLOW_HTTP=true on a private network`,
  ({ DATA_ENCRYPTION_KEY: key }, demo) =>
    !key &&
    !demo &&
    'DATA_ENCRYPTION_KEY is not set, but is required to store refund receivers encrypted; for example DATA_ENCRYPTION_KEY=<the output of: openssl rand -base64 32>',
  ({ GATEWAY_REFUND_DEDUPES: dedupes }, demo) =>
    dedupes === undefined &&
    !demo &&
    'GATEWAY_REFUND_DEDUPES is not set, but is required outside demo mode: true if the gateway refuses a request id it has seen, false if it does not or you do not know; for example GATEWAY_REFUND_DEDUPES=false',
  ({ GATEWAY_CARDS_SUCCESS_CODE: success, GATEWAY_CARDS_NOT_FOUND_CODES: notFound }) =>
    notFound.includes(success) &&
    `GATEWAY_CARDS_NOT_FOUND_CODES must not contain ${success}, which is GATEWAY_CARDS_SUCCESS_CODE; for example GATEWAY_CARDS_NOT_FOUND_CODES=404`,
  ...MINIMA.map(
    ([name, minimum, example]): Rule =>
      (settings) =>
        settings[name] < settings[minimum] &&
        `${name} must be at least ${minimum}; for example ${name}=${example}`,
  ),
]

/** Checks the rules between settings that are valid on their own. @returns one line per violated rule */
export function findConflicts(settings: Settings, demo: boolean): string[] {
  return RULES.flatMap((rule) => rule(settings, demo) || [])
}

/** The addresses that stand for every address of this machine. */
const EVERY_HOST = ['0.0.0.0', '::']

/** Whether a port cannot be listened on at both addresses. With 0 the system picks a free port for each. */
function doPortsClash(port: number, one: string, other: string): boolean {
  return port !== 0 && (one === other || [one, other].some((host) => EVERY_HOST.includes(host)))
}
