import type { IncomingMessage } from 'node:http'
import type { BodyBudget } from '../platform/http/body.ts'
import { compileNetworks } from '../platform/http/client-address.ts'
import { type IpnAnswer, OVERLOADED } from './answer.ts'
import type { IpnContext } from './context.ts'
import { InboxFullError } from './inbox.ts'
import { readIpnRequest } from './read-request.ts'
import { createReceiveNotification } from './receive-notification.ts'
import { createSignatureThrottle } from './signature-throttle.ts'

const MAX_BODY_BYTES = 64 * 1024

const STORED: IpnAnswer = { status: 200, verdict: 'stored' }
const STATUS = {
  malformed: 400,
  bad_signature: 401,
  recut: 401,
  unknown_merchant: 404,
} as const

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
  const signatureThrottle = createSignatureThrottle()
  const receive = createReceiveNotification(ctx)

  return async (incoming, address) => {
    if (!methods.includes(incoming.method ?? '')) {
      const headers = { allow: methods.join(', ') }
      return { status: 405, verdict: 'method', why: `use ${methods.join(' or ')}`, headers }
    }
    if (!isAllowed(address)) return { status: 403, verdict: 'address', why: 'address not allowed' }
    // Before the body takes memory, and its hash CPU time.
    if (ctx.inbox.isFull()) throw new InboxFullError('too many notifications wait for the database')
    const request = await readIpnRequest(incoming, address, bodyLimits)
    if ('status' in request) return request
    const receipt = await receive(request)
    if (receipt.verdict === 'bad_signature') {
      const throttledMs = signatureThrottle.count(address)
      if (throttledMs > 0) return answerThrottled(throttledMs)
    }
    if (receipt.verdict === 'stored') return STORED
    return { status: STATUS[receipt.verdict], ...receipt }
  }
}

/** The answer to a notification that could not be stored: the gateway has to send it again. */
export function answerFailure(error: unknown): IpnAnswer {
  if (error instanceof InboxFullError) return OVERLOADED
  return { ...OVERLOADED, status: 500, verdict: 'store_failed' }
}

function answerThrottled(ms: number): IpnAnswer {
  const why = 'too many notifications with a wrong or missing hash from this address'
  const headers = { 'retry-after': String(Math.ceil(ms / 1000)) }
  return { status: 429, verdict: 'throttled', why, headers }
}
