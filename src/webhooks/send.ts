import { isIP } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { Agent, buildConnector } from 'undici'
import { type ExchangeResult, exchange } from '../gateway/exchange.ts'
import { AddressError, type Resolve, requireAddress } from './addresses.ts'
import { hostOf, readUrl } from './url.ts'

/** One call to a receiver, connecting and reading included (ms). */
export const CALL_MS = 15_000

/** What is read of an answer (bytes): its status decides. */
const MAX_ANSWER_BYTES = 4 * 1024

/** How long a registration waits for a name server (ms). */
const RESOLVE_MS = 4_000

/** What is sent, and when by the database's clock; the same id means the same event. */
export type Message = { url: string; secret: string; id: string; at: Date; body: string }

/** `error` is null when the receiver took it, with a 2xx. */
export type Sent = { status: number | null; error: string | null; durationMs: number }

/** Calls receivers of webhooks, and no other address than those that may be called. */
export type Sender = {
  /** Sends once: nothing is repeated, no redirect followed. Never rejects. */
  send(message: Message, signal: AbortSignal): Promise<Sent>
  /**
   * Looks at an address before anything is sent there. A name that is not known (yet) is let through:
   * it is looked at again with each call.
   * @throws AddressError
   */
  check(url: string): Promise<void>
  close(): Promise<void>
}

/**
 * Signs by Standard Webhooks 1.0. Addresses are checked where the connection is made, in the very answer
 * of the name server that is connected to: a name that leads elsewhere a moment later changes nothing.
 */
export function createSender(
  allowPrivate: boolean,
  resolve: Resolve,
  { callMs = CALL_MS, resolveMs = RESOLVE_MS } = {},
): Sender {
  const agent = new Agent({
    connect: guardConnections(allowPrivate, resolve, callMs),
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async send({ url, secret, id, at, body }, signal) {
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
          'webhook-signature': new Webhook(secret).sign(id, at, body),
        },
        body,
        timeoutMs: callMs,
        maxAnswerBytes: MAX_ANSWER_BYTES,
        signal,
      })
      return { ...judge(result), durationMs: Math.round(performance.now() - began) }
    },
    async check(text) {
      const url = readUrl(text, allowPrivate)
      const name = hostOf(url)
      if (isIP(name) !== 0) return
      const late = new Promise<string[]>((give) => setTimeout(give, resolveMs, []).unref())
      const addresses = await Promise.race([resolve(name), late]).catch(() => [])
      for (const address of addresses) requireAddress(address, isPlain(url), allowPrivate)
    },
    close: () => agent.destroy(),
  }
}

/** The status counts as soon as it is there: an answer too long or too slow says no more than it. */
function judge(result: ExchangeResult): Omit<Sent, 'durationMs'> {
  const status = 'status' in result ? (result.status ?? null) : null
  if (status !== null) {
    const taken = status >= 200 && status < 300
    return { status, error: taken ? null : `answered ${status}` }
  }
  return { status, error: 'reason' in result ? result.reason : 'no answer' }
}

const isPlain = ({ protocol }: { protocol: string }) => protocol === 'http:'

/**
 * Makes connections to allowed addresses only. Every address of a name has to be allowed, not just the
 * one that is tried first. Certificates are verified whatever `NODE_TLS_REJECT_UNAUTHORIZED` says.
 */
function guardConnections(
  allowPrivate: boolean,
  resolve: Resolve,
  timeout: number,
): buildConnector.connector {
  const build = (plain: boolean) =>
    buildConnector({
      timeout,
      rejectUnauthorized: true,
      lookup(hostname, { all, family }, callback) {
        resolve(hostname).then(
          (addresses) => {
            const found = addresses.map((address) => ({ address, family: isIP(address) }))
            try {
              for (const { address } of found) requireAddress(address, plain, allowPrivate)
            } catch (error) {
              return callback(error instanceof Error ? error : new Error(String(error)), [])
            }
            const fit = found.filter((one) => !family || one.family === Number(family))
            const [first] = fit
            if (!first) return callback(new AddressError('has no address'), [])
            if (all) callback(null, fit)
            else callback(null, first.address, first.family)
          },
          (error: Error) => callback(error, []),
        )
      },
    })
  const [plain, secure] = [build(true), build(false)]
  return (options, callback) => {
    // No name is looked up for an address: the lookup above never sees it.
    try {
      const { hostname } = options
      if (isIP(hostname) !== 0) requireAddress(hostname, isPlain(options), allowPrivate)
    } catch (error) {
      return callback(error instanceof Error ? error : new Error(String(error)), null)
    }
    return isPlain(options) ? plain(options, callback) : secure(options, callback)
  }
}
