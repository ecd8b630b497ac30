import { doHostsOverlap } from './do-hosts-overlap.ts'
import { isPlainRemote } from './plain-http.ts'
import { measureVariety } from './secret-strength.ts'
import type { Settings } from './settings.ts'

/** Pairs of a setting, the setting it must not be less than, and an example. */
const MINIMA = [
  ['SYNC_BACKOFF_MAX_MS', 'SYNC_BACKOFF_MS', 3_600_000],
  ['REFUND_BACKOFF_MAX_MS', 'REFUND_BACKOFF_MS', 900_000],
  ['SYNC_MAX_GAP_MS', 'SYNC_MIN_GAP_MS', 1_000],
] as const

/** Checks the rules between settings that are valid on their own. @returns one line per violated rule */
export function findConflicts(settings: Settings, demo: boolean): string[] {
  return [
    ...checkMetrics(settings),
    ...checkGateway(settings, demo),
    ...checkEncryption(settings, demo),
    ...checkApiKey(settings),
    ...checkRefunds(settings, demo),
    ...checkCards(settings),
    ...MINIMA.filter(([name, minimum]) => settings[name] < settings[minimum]).map(
      ([name, minimum, example]) =>
        `${name} must be at least ${minimum}; for example ${name}=${example}`,
    ),
  ]
}

function checkMetrics({ HOST, PORT, METRICS_HOST: host, METRICS_PORT: port }: Settings): string[] {
  if (port === undefined) {
    if (host === undefined) return []
    return ['METRICS_PORT is not set, but METRICS_HOST requires it; for example METRICS_PORT=9464']
  }
  // With 0 the system picks a free port for each.
  if (port !== PORT || port === 0 || !doHostsOverlap(HOST, host ?? HOST)) return []
  return [
    `METRICS_PORT must differ from PORT at the same address, because metrics get a listener of their own (got "${port}"); for example METRICS_PORT=9464`,
  ]
}

function checkGateway(
  { GATEWAY_BASE_URL: base, GATEWAY_ALLOW_HTTP: allowHttp }: Settings,
  demo: boolean,
): string[] {
  if (!base) {
    if (demo) return []
    return [
      'GATEWAY_BASE_URL is not set, but is required outside demo mode; for example GATEWAY_BASE_URL=https://gateway.example, or DEMO=true to run the demo on any HOST',
    ]
  }
  if (allowHttp || !isPlainRemote(new URL(base))) return []
  return [
    `GATEWAY_BASE_URL must start with https:// because only TLS authenticates the gateway's answers (got "${base}"); for example GATEWAY_BASE_URL=https://gateway.example, or GATEWAY_ALLOW_HTTP=true on a private network`,
  ]
}

function checkEncryption({ DATA_ENCRYPTION_KEY: key }: Settings, demo: boolean): string[] {
  if (key || demo) return []
  return [
    'DATA_ENCRYPTION_KEY is not set, but is required to store refund receivers encrypted; for example DATA_ENCRYPTION_KEY=<the output of: openssl rand -base64 32>',
  ]
}

/** An `API_KEY` of fewer bits is refused: 32 random digits have 106. */
const LEAST_API_KEY_BITS = 96

function checkApiKey({ API_KEY: key }: Settings): string[] {
  if (!key || measureVariety(key) >= LEAST_API_KEY_BITS) return []
  return [
    'API_KEY must not be easy to guess: it has too few different characters, or repeats them; for example API_KEY=<the output of: openssl rand -hex 32>',
  ]
}

function checkRefunds({ GATEWAY_REFUND_DEDUPES: dedupes }: Settings, demo: boolean): string[] {
  if (dedupes !== undefined || demo) return []
  return [
    'GATEWAY_REFUND_DEDUPES is not set, but is required outside demo mode: true if the gateway refuses a request id it has seen, false if it does not or you do not know; for example GATEWAY_REFUND_DEDUPES=false',
  ]
}

function checkCards({
  GATEWAY_CARDS_SUCCESS_CODE: success,
  GATEWAY_CARDS_NOT_FOUND_CODES: notFound,
}: Settings): string[] {
  if (!notFound.includes(success)) return []
  return [
    `GATEWAY_CARDS_NOT_FOUND_CODES must not contain ${success}, which is GATEWAY_CARDS_SUCCESS_CODE; for example GATEWAY_CARDS_NOT_FOUND_CODES=404`,
  ]
}
