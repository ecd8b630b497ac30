import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { Agent, buildConnector } from 'undici'
import type { Context } from '../context.ts'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'
import { maskCardText } from '../platform/crypto/masking.ts'
import {
  AddressError,
  type AddressReach,
  parseOutboundUrl,
  type ResolveHost,
  readHost,
  requireAllowedAddress,
} from '../platform/outbound/addresses.ts'
import { type ExchangeResult, exchange } from '../platform/outbound/exchange.ts'

export type WebhooksContext = Context & {
  webhooks: WebhookSender
}

/** The encrypted secrets of the endpoint `id`; the previous one is null once it has expired. */
export type StoredSecrets = { id: string; secret: Buffer; previousSecret: Buffer | null }

/** Where a secret is stored. It is bound to this text, which therefore must not change. */
export function placeSecret(
  endpointId: string,
  column: 'secret' | 'previous_secret' = 'secret',
): Place {
  return { column: `webhook_endpoints.${column}`, row: `webhook endpoint ${endpointId}` }
}

/** A secret of 32 random bytes, as Standard Webhooks writes it. */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** Decrypts the secrets that sign, the current one first. @throws Error if a data key is missing */
export function openSecrets(
  { decrypt }: Pick<Encryption, 'decrypt'>,
  { id, secret, previousSecret }: StoredSecrets,
): string[] {
  const current = decrypt(secret, placeSecret(id))
  if (!previousSecret) return [current]
  return [current, decrypt(previousSecret, placeSecret(id, 'previous_secret'))]
}

const toError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)))
const isPlain = ({ protocol }: { protocol: string }) => protocol === 'http:'

/**
 * Connects to allowed addresses only. Every address of a name has to be allowed, not just the one that is tried
 * first. Certificates are verified whatever `NODE_TLS_REJECT_UNAUTHORIZED` says.
 */
function guardConnections(
  reach: AddressReach,
  resolve: ResolveHost,
  timeout: number,
): buildConnector.connector {
  const build = (plain: boolean) =>
    buildConnector({
      timeout,
      rejectUnauthorized: true,
      lookup(hostname, { all, family }, callback) {
        const allowed = resolve(hostname).then((addresses) => {
          for (const address of addresses) requireAllowedAddress(address, plain, reach)
          const found = addresses.map((address) => ({ address, family: isIP(address) }))
          const [first, ...more] = found.filter((one) => !family || one.family === Number(family))
          if (!first) throw new AddressError('has no address')
          return [first, ...more] as const
        })
        allowed.then(
          ([first, ...more]) =>
            all ? callback(null, [first, ...more]) : callback(null, first.address, first.family),
          (error: unknown) => callback(toError(error), []),
        )
      },
    })
  const [plain, secure] = [build(true), build(false)]
  return (options, callback) => {
    // A literal address is never resolved, so the lookup above does not check it.
    try {
      const { hostname } = options
      if (isIP(hostname) !== 0) requireAllowedAddress(hostname, isPlain(options), reach)
    } catch (error) {
      return callback(toError(error), null)
    }
    return isPlain(options) ? plain(options, callback) : secure(options, callback)
  }
}

const KEPT_ANSWER_BYTES = 1_024

/** Makes the beginning of an answer readable: replaces what is not UTF-8 or not printable, and masks card data. */
function readAnswerText(body: Buffer): string {
  // Masked before it is cut: a number that is cut in two would not be recognised.
  const text = new TextDecoder().decode(body).replace(/[^\P{Cc}\n\t]/gu, '\ufffd')
  const bytes = Buffer.from(maskCardText(text)).subarray(0, KEPT_ANSWER_BYTES)
  // As a stream, so that a character that was cut in two is left out.
  return new TextDecoder().decode(bytes, { stream: true })
}

/** Timeout of a call, from connecting to the last byte read (ms). */
export const CALL_MS = 15_000

/** A test without an answer takes exactly this long (ms): a shorter time would show which ports are open. */
const TEST_MS = 5_000

const MAX_ANSWER_BYTES = 4 * 1024

/** Timeout of the address lookup at registration (ms). */
const RESOLVE_MS = 4_000

/** A message to send. `at` is database time; messages with the same id carry the same event. */
type WebhookMessage = {
  url: string
  secrets: readonly string[]
  id: string
  at: Date
  body: string
}

/** `error` is null if the endpoint answered 2xx, else a text for the log; `answer` is the beginning of the body. */
export type SendResult = {
  status: number | null
  error: string | null
  answer: string | null
  durationMs: number
}

export type WebhookTimeouts = { callMs: number; resolveMs: number; testMs: number }

export type WebhookSender = ReturnType<typeof createWebhookSender>

/**
 * Sends to allowed addresses only, and signs as Standard Webhooks 1.0 requires. The addresses are checked in the DNS
 * answer that the connection uses, so a name that resolves differently a moment later (DNS rebinding) is harmless.
 */
export function createWebhookSender(
  reach: AddressReach,
  resolve: ResolveHost,
  { callMs = CALL_MS, resolveMs = RESOLVE_MS, testMs = TEST_MS }: Partial<WebhookTimeouts> = {},
) {
  const agent = new Agent({
    connect: guardConnections(reach, resolve, callMs),
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  async function send(
    { url, secrets, id, at, body }: WebhookMessage,
    signal: AbortSignal,
    timeoutMs = callMs,
  ): Promise<SendResult> {
    const began = performance.now()
    const { origin, pathname, search } = new URL(url)
    const result = await exchange(agent, {
      origin,
      path: pathname + search,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'ipn-processor-webhooks',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
        // Standard Webhooks: signatures are separated by spaces; one that verifies is enough.
        'webhook-signature': secrets
          .map((secret) => new Webhook(secret).sign(id, at, body))
          .join(' '),
      },
      body,
      timeoutMs,
      maxAnswerBytes: MAX_ANSWER_BYTES,
      signal,
    })
    return { ...readResult(result), durationMs: Math.round(performance.now() - began) }
  }

  return {
    /** Makes one call, without a retry or a redirect. Never rejects. */
    send: (message: WebhookMessage, signal: AbortSignal) => send(message, signal),
    /** Makes one call that, without an answer, ends after exactly `testMs` and gives no reason. */
    async sendTest(message: WebhookMessage, signal: AbortSignal): Promise<SendResult> {
      const sent = await send(message, signal, testMs)
      if (sent.status !== null) return sent
      const left = Math.max(0, testMs - sent.durationMs)
      await pause(left, undefined, { signal }).catch(() => {})
      return { ...sent, error: describeFailure(sent.error), durationMs: testMs }
    },
    /**
     * Checks a URL at registration. A name that does not resolve (yet) is accepted, as every call checks again.
     * @throws AddressError if it is malformed, or its address or port is not allowed
     */
    async check(text: string): Promise<void> {
      const url = parseOutboundUrl(text, reach)
      requireUsualPort(url)
      const name = readHost(url)
      if (isIP(name) !== 0) return
      const late = new Promise<string[]>((resolve) => setTimeout(resolve, resolveMs, []).unref())
      const addresses = await Promise.race([resolve(name), late]).catch(() => [])
      for (const address of addresses) requireAllowedAddress(address, isPlain(url), reach)
    },
    close: () => agent.destroy(),
  }
}

/** The ports below this one belong to the system services of a machine. */
export const FIRST_FREE_PORT = 1_024

function requireUsualPort({ port }: URL): void {
  if (['', '80', '443'].includes(port) || Number(port) >= FIRST_FREE_PORT) return
  throw new AddressError(`must have the port 443, 80 or one from ${FIRST_FREE_PORT} on`)
}

/** A received status decides the result, even if the rest of the response was too long or too slow. */
function readResult(result: ExchangeResult): Omit<SendResult, 'durationMs'> {
  const status = 'status' in result ? (result.status ?? null) : null
  if (status !== null) {
    const accepted = status >= 200 && status < 300
    const body = result.kind === 'answer' ? result.body : result.kind === 'unknown' && result.part
    const answer = body ? readAnswerText(body) : ''
    return { status, error: accepted ? null : `answered ${status}`, answer }
  }
  return { status, error: 'reason' in result ? result.reason : 'no answer', answer: null }
}

/** The result for an event that cannot be written: nothing was sent, so it says nothing about the endpoint. */
export const UNWRITABLE: SendResult = {
  status: null,
  error: 'the event could not be written',
  answer: null,
  durationMs: 0,
}

/**
 * Returns what merchants may know of a failed call. How a connection failed would show which ports of a network are
 * open and what listens there, so only the log says it.
 */
export function describeFailure(error: string | null): string | null {
  if (error === null || error === UNWRITABLE.error) return error
  if (error.startsWith('answered ') || error.startsWith('the url ')) return error
  return 'no answer'
}
