import type { IncomingMessage } from 'node:http'
import type { BodyBudget } from '../http/body.ts'
import { compileNetworks, nameNetwork } from '../http/client-address.ts'
import { type IpnAnswer, OVERLOADED } from './answer.ts'
import type { IpnContext } from './context.ts'
import { createGuard } from './guard.ts'
import { InboxFullError } from './inbox.ts'
import { CLOSE, readIpnRequest } from './read-request.ts'
import { createReceiveNotification } from './receive-notification.ts'

const MAX_BODY_BYTES = 64 * 1024

const STORED: IpnAnswer = { status: 200, verdict: 'stored' }
const STATUS = {
  malformed: 400,
  bad_signature: 401,
  recut: 401,
  unknown_merchant: 404,
} as const

/** What the gateway never sends. An unknown account or another meaning of a signed text may be well signed. */
const BAD: ReadonlySet<IpnAnswer['verdict']> = new Set(['malformed', 'bad_signature'])

type DecideAnswer = (request: IncomingMessage, address: string) => Promise<IpnAnswer>

/**
 * Makes the function that processes a notification request and decides its answer. The cheapest checks
 * come first. What it makes throws InboxFullError and database errors: `answerFailure` translates them.
 * @param budget shared with every other route that reads bodies
 */
export function createDecideAnswer(ctx: IpnContext, budget: BodyBudget): DecideAnswer {
  const { IPN_ALLOW_CIDRS, IPN_ACCEPT_GET } = ctx.config
  const isAllowed = IPN_ALLOW_CIDRS ? compileNetworks(IPN_ALLOW_CIDRS) : () => true
  const methods = IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST']
  const bodyLimits = { limit: MAX_BODY_BYTES, timeoutMs: ctx.config.bodyTimeoutMs, budget }
  const guard = createGuard()
  const receive = createReceiveNotification(ctx)

  return async (incoming, address) => {
    if (!methods.includes(incoming.method ?? '')) {
      const headers = { allow: methods.join(', ') }
      return { status: 405, verdict: 'method', why: `use ${methods.join(' or ')}`, headers }
    }
    if (!isAllowed(address)) return { status: 403, verdict: 'address', why: 'address not allowed' }
    // Before the body takes memory, and its hash CPU time.
    if (ctx.inbox.isFull()) throw new InboxFullError('too many notifications wait for the database')
    const network = nameNetwork(address)
    const waitMs = guard.measureWait(network)
    if (waitMs > 0) return answerUnread(waitMs)
    const request = await readIpnRequest(incoming, address, bodyLimits)
    // Others of the network may have arrived meanwhile.
    const stillMs = guard.measureWait(network)
    if (stillMs > 0) return answerUnread(stillMs)
    if ('status' in request) {
      const bytes = Math.min(
        MAX_BODY_BYTES,
        Number(incoming.headers['content-length'] ?? MAX_BODY_BYTES),
      )
      const isBad = BAD.has(request.verdict)
      const badMs = guard.charge(network, { isBad, bytes, tookMs: 0 })
      return badMs > 0 ? answerThrottled(badMs) : request
    }
    const startedAt = performance.now()
    const receiving = receive(request)
    // What it does before it waits for the commit: all that a refused notification takes.
    const tookMs = performance.now() - startedAt
    const receipt = await receiving
    if (receipt.verdict === 'stored') return STORED
    const isBad = BAD.has(receipt.verdict)
    const badMs = guard.charge(network, { isBad, bytes: request.body.length, tookMs })
    if (badMs > 0) return answerThrottled(badMs)
    return { status: STATUS[receipt.verdict], ...receipt }
  }
}

/** The answer to a notification that could not be stored: the gateway has to send it again. */
export function answerFailure(error: unknown): IpnAnswer {
  if (error instanceof InboxFullError) return OVERLOADED
  return { ...OVERLOADED, status: 500, verdict: 'store_failed' }
}

function answerThrottled(ms: number): IpnAnswer {
  const why = 'too many malformed or wrongly signed notifications from this network'
  const headers = { 'retry-after': String(Math.ceil(ms / 1000)) }
  return { status: 429, verdict: 'throttled', why, headers }
}

/** Not 429: an unread notification may be well signed, and the gateway has to send it again. */
function answerUnread(ms: number): IpnAnswer {
  const why = 'too many notifications of this network were refused, send it again'
  const headers = { 'retry-after': String(Math.ceil(ms / 1000)), ...CLOSE }
  return { status: 503, verdict: 'throttled', why, headers }
}
