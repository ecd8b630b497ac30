import type { MerchantAccount } from './accounts.ts'
import { isPlainRemote } from './setting-types.ts'
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
    ...checkSandbox(settings, demo),
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

function checkSandbox(
  { HOST, PORT, SANDBOX_HOST, SANDBOX_PORT, GATEWAY_BASE_URL }: Settings,
  demo: boolean,
): string[] {
  if (!demo || GATEWAY_BASE_URL || SANDBOX_PORT !== PORT || PORT === 0) return []
  if (!doHostsOverlap(HOST, SANDBOX_HOST)) return []
  return [
    `SANDBOX_PORT must differ from PORT at the same address, because the sandbox gateway gets a listener of its own (got "${PORT}"); for example SANDBOX_PORT=${PORT === 4_010 ? 4_011 : 4_010}`,
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

/** The addresses that stand for every address of this machine. */
const EVERY_HOST = ['0.0.0.0', '::']

/** Returns whether the same port cannot be listened on at both addresses. */
function doHostsOverlap(one: string, other: string): boolean {
  return one === other || [one, other].some((host) => EVERY_HOST.includes(host))
}

/** What random bytes of a secret should at least make: less can be guessed one day. */
export const STRONG_BITS = 128

/** A character of a text in words is worth about this much (Shannon, 1951: 0.6 to 1.3; more for odd spellings). */
const BITS_IN_WORDS = 2

/**
 * Estimates the bits of a secret from its length, its alphabet and its variety. It is never sure: what looks random may
 * have been chosen by a person, so only a low estimate means something.
 */
export function estimateBits(text: string): number {
  const isWords = /^[A-Z]?[a-z]+([-_ .]?[A-Z][a-z]+|[-_ .][a-z]+)*[-_ .]?\d{0,4}$/.test(text)
  if (!isWords || isHex(text)) return measureVariety(text)
  return Math.floor(countUnforeseen(text) * BITS_IN_WORDS)
}

/** The same without regard to words: what it would have if it were random. */
export function measureVariety(text: string): number {
  const length = countUnforeseen(text.slice(0, findPeriod(text)))
  // Random text shows at least a quarter of its alphabet: fewer characters mean a smaller one.
  const distinct = new Set(text).size
  return Math.floor(length * Math.log2(Math.min(measureAlphabet(text), 4 * distinct)))
}

/** A signing secret that may be guessed; `setting` names the current or the previous one. */
export type WeakSecret = { merchantCode: string; which: 'secret' | 'previousSecret'; bits: number }

/** Finds the signing secrets of less than 128 bits. */
export function findWeakSecrets(accounts: readonly MerchantAccount[]): WeakSecret[] {
  return accounts.flatMap((account) =>
    (['secret', 'previousSecret'] as const).flatMap((which) => {
      const secret = account[which]
      const bits = secret === undefined ? STRONG_BITS : estimateBits(secret)
      return bits < STRONG_BITS ? [{ merchantCode: account.merchantCode, which, bits }] : []
    }),
  )
}

const isHex = (text: string) => /^([\da-f]+|[\dA-F]+)$/.test(text)

function measureAlphabet(text: string): number {
  if (/^\d+$/.test(text)) return 10
  if (isHex(text)) return 16
  const classes = [
    [/[a-z]/, 26],
    [/[A-Z]/, 26],
    [/\d/, 10],
    [/[^a-zA-Z\d]/, 2],
  ] as const
  return classes.reduce((sum, [form, size]) => sum + (form.test(text) ? size : 0), 0)
}

/** Finds the length of the part whose repetition is the text; the text's own if it repeats nothing. */
function findPeriod(text: string): number {
  const at = `${text}${text}`.indexOf(text, 1)
  return text.length % at === 0 ? at : text.length
}

/** Counts the characters but those that go on with four equal steps, as in `aaaaa` or `12345`. */
function countUnforeseen(text: string): number {
  const codes = [...text].map((one) => one.codePointAt(0) ?? 0)
  const step = (at: number) => (codes[at] ?? 0) - (codes[at - 1] ?? 0)
  return codes.filter((_, at) => at < 4 || new Set([0, 1, 2, 3].map((n) => step(at - n))).size > 1)
    .length
}
