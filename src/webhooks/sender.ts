import { isIP } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { Agent } from 'undici'
import {
  type AddressReach,
  type ResolveHost,
  requireAllowedAddress,
} from '../platform/outbound/addresses.ts'
import { type ExchangeResult, exchange } from '../platform/outbound/exchange.ts'
import { parseOutboundUrl, readHost } from '../platform/outbound/url.ts'
import { guardConnections, isPlain } from './guard-connections.ts'
import { readAnswerText } from './read-answer-text.ts'

/** Timeout of one call to an endpoint, from connecting to the last byte read (ms). */
export const CALL_MS = 15_000

/** Bytes read of a response: only its status decides, and the log shows its beginning. */
const MAX_ANSWER_BYTES = 4 * 1024

/** Timeout of the address lookup at registration (ms). */
const RESOLVE_MS = 4_000

/**
 * A message to send, signed with each of the secrets. `at` is database time; messages with the same id carry the same
 * event.
 */
export type WebhookMessage = {
  url: string
  secrets: readonly string[]
  id: string
  at: Date
  body: string
}

/** The result of a call. `error` is null if the endpoint answered 2xx; `answer` is the beginning of its body. */
export type SendResult = {
  status: number | null
  error: string | null
  answer: string | null
  durationMs: number
}

/** Sends messages to webhook endpoints, at allowed addresses only. */
export type WebhookSender = {
  /** Sends a message once: no retry, no redirect. Never rejects. */
  send(message: WebhookMessage, signal: AbortSignal): Promise<SendResult>
  /**
   * Checks a URL at registration. A name that does not resolve (yet) is accepted: every call checks again.
   * @throws AddressError when it is malformed or its address is not allowed
   */
  check(url: string): Promise<void>
  close(): Promise<void>
}

/**
 * Makes a sender that signs by Standard Webhooks 1.0. Addresses are checked as the connection is made, in the
 * same DNS answer that it uses, so a name that resolves differently a moment later (DNS rebinding) is harmless.
 */
export function createWebhookSender(
  reach: AddressReach,
  resolve: ResolveHost,
  { callMs = CALL_MS, resolveMs = RESOLVE_MS } = {},
): WebhookSender {
  const agent = new Agent({
    connect: guardConnections(reach, resolve, callMs),
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async send({ url, secrets, id, at, body }, signal) {
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
          // Standard Webhooks: signatures are separated by spaces, and one that verifies is enough.
          'webhook-signature': secrets
            .map((secret) => new Webhook(secret).sign(id, at, body))
            .join(' '),
        },
        body,
        timeoutMs: callMs,
        maxAnswerBytes: MAX_ANSWER_BYTES,
        signal,
      })
      return { ...readResult(result), durationMs: Math.round(performance.now() - began) }
    },
    async check(text) {
      const url = parseOutboundUrl(text, reach)
      const name = readHost(url)
      if (isIP(name) !== 0) return
      const late = new Promise<string[]>((resolve) => setTimeout(resolve, resolveMs, []).unref())
      const addresses = await Promise.race([resolve(name), late]).catch(() => [])
      for (const address of addresses) requireAllowedAddress(address, isPlain(url), reach)
    },
    close: () => agent.destroy(),
  }
}

/** A received status decides, even if the rest of the response was too long or too slow. */
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
