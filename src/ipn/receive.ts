import type { IncomingMessage, ServerResponse } from 'node:http'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { createNotificationReader, type Notification } from '../gateway/notification.ts'
import { describeMethod } from '../http/app.ts'
import type { BodyBudget } from '../http/body.ts'
import { compileNetworks, findClientAddress, nameNetwork } from '../http/client-address.ts'
import { chooseRequestId, SECURITY_HEADERS } from '../http/raw-response.ts'
import type { ActiveSpan, SpanOptions } from '../platform/telemetry/tracing.ts'
import { createGuard } from './guard.ts'
import { InboxFullError, type IpnContext } from './inbox.ts'
import { CLOSE, type IpnAnswer, OVERLOADED, readIpnRequest } from './read-request.ts'
import { createIpnMeter, createRefusalLog } from './report.ts'

/** Serves one request. It always answers. */
export type NotificationServer = (request: IncomingMessage, response: ServerResponse) => void

/** Returns whether a request is for `/ipn`. */
export function isIpnTarget(target = ''): boolean {
  return target === '/ipn' || target.startsWith('/ipn?')
}

/**
 * Serves `/ipn`, the gateway's side, on the server's own requests: routing, middleware and response objects of
 * the framework cost more than everything else that a notification needs. `respcode` 0 acknowledges receipt,
 * after the commit and never before; anything else makes the gateway send again.
 * @param budget shared with every other route that reads bodies
 */
export function createNotificationServer(ctx: IpnContext, budget: BodyBudget): NotificationServer {
  const isTrustedProxy = compileNetworks(ctx.config.TRUSTED_PROXIES)
  const decideAnswer = createDecideAnswer(ctx, budget)
  const refusals = createRefusalLog(ctx)
  const meter = createIpnMeter(ctx)

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    span: ActiveSpan,
  ): Promise<void> {
    const startedAt = performance.now()
    const { headers, method = '', socket } = request
    const forwardedFor = headers['x-forwarded-for']
    const address = findClientAddress(
      socket.remoteAddress ?? '',
      typeof forwardedFor === 'string' ? forwardedFor : undefined,
      isTrustedProxy,
    )
    let answer: IpnAnswer
    try {
      answer = await decideAnswer(request, address, span)
    } catch (error) {
      answer = answerFailure(error)
      refusals.logFailure(error, answer, { address, requestId })
    }
    send(response, answer, requestId, ctx.stopping.aborted)
    meter(method, answer, performance.now() - startedAt)
    const { status, verdict } = answer
    span.setAttributes({ 'http.response.status_code': status, 'ipn.verdict': verdict })
    if (status >= 500) span.fail(verdict)
    if (verdict !== 'stored') refusals.logRefusal(answer, { address, requestId })
  }

  return (request, response) => {
    const requestId = chooseRequestId(request.headers['x-request-id'])
    void ctx.tracing.run(
      () => describeRequest(request, requestId),
      (span) => serve(request, response, requestId, span),
    )
  }
}

/** Names and values in turn, as Node's HTTP server takes them at the least cost. */
const FIXED_LINES = [
  ...Object.entries(SECURITY_HEADERS).flat(),
  ...['content-type', 'application/json'],
]
const RECEIVED = JSON.stringify({ respcode: 0, respmsg: 'received' })

function send(
  response: ServerResponse,
  { status, verdict, why, headers }: IpnAnswer,
  requestId: string,
  stopping: boolean,
): void {
  const body =
    verdict === 'stored' ? RECEIVED : JSON.stringify({ respcode: 1, respmsg: why ?? 'refused' })
  const length = String(Buffer.byteLength(body))
  const lines = [...FIXED_LINES, 'content-length', length, 'x-request-id', requestId]
  if (headers) lines.push(...Object.entries(headers).flat())
  // A client that keeps its connection open would delay the stop by seconds.
  if (stopping) lines.push('connection', 'close')
  response.writeHead(status, lines)
  response.end(body)
}

/**
 * The span of a request. The sender is not authenticated yet: its trace is linked, not continued, so that it
 * does not decide what is sampled.
 */
function describeRequest(request: IncomingMessage, requestId: string): SpanOptions {
  const method = describeMethod(request.method ?? '')
  const traceParent = request.headers.traceparent
  return {
    name: `${method} /ipn`,
    kind: 'server',
    attributes: { 'http.request.method': method, 'http.route': '/ipn' },
    links: [typeof traceParent === 'string' ? traceParent : undefined],
    requestId,
  }
}

const MAX_BODY_BYTES = 64 * 1024

const STORED: IpnAnswer = { status: 200, verdict: 'stored' }
const STATUS = {
  malformed: 400,
  bad_signature: 401,
  unknown_merchant: 404,
} as const

/** What the gateway never sends. An unknown account or another meaning of a signed text may be well signed. */
const BAD: ReadonlySet<IpnAnswer['verdict']> = new Set(['malformed', 'bad_signature'])

const RECUT: IpnAnswer = {
  status: 401,
  verdict: 'recut',
  why: 'recut: other notifications with this hash were received',
}

type DecideAnswer = (
  request: IncomingMessage,
  address: string,
  span: ActiveSpan,
) => Promise<IpnAnswer>

/**
 * Makes the function that processes a notification request and decides its answer. The cheapest checks
 * come first. What it makes throws InboxFullError and database errors: `answerFailure` translates them.
 * @param budget shared with every other route that reads bodies
 */
function createDecideAnswer(ctx: IpnContext, budget: BodyBudget): DecideAnswer {
  const { IPN_ALLOW_CIDRS, IPN_ACCEPT_GET } = ctx.config
  const isAllowed = IPN_ALLOW_CIDRS ? compileNetworks(IPN_ALLOW_CIDRS) : () => true
  const methods = IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST']
  const bodyLimits = { limit: MAX_BODY_BYTES, timeoutMs: ctx.config.bodyTimeoutMs, budget }
  const guard = createGuard()
  const read = createNotificationReader(ctx.config)

  return async (incoming, address, span) => {
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
    const request = await readIpnRequest(incoming, bodyLimits)
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
    const found = read(request.format, request.body)
    // All that a refused notification takes: what follows waits for the commit.
    const tookMs = performance.now() - startedAt
    const bytes = request.body.length
    if ('why' in found) {
      const isBad = BAD.has(found.verdict)
      const badMs = guard.charge(network, { isBad, bytes, tookMs })
      if (badMs > 0) return answerThrottled(badMs)
      return { status: STATUS[found.verdict], ...found }
    }
    if (ctx.tracing.enabled) {
      span.setAttributes(describeSubject(found))
      if (found.kind === 'payment') ctx.tracing.remember(formatTransactionKey(found))
    }
    if ((await ctx.inbox.store(Object.assign(found, { address }))) === 'stored') return STORED
    guard.charge(network, { isBad: false, bytes, tookMs })
    return RECUT
  }
}

/** The answer to a notification that could not be stored: the gateway has to send it again. */
function answerFailure(error: unknown): IpnAnswer {
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

/** What a received notification is about, for its trace, which the query that follows continues. */
function describeSubject({ merchantCode, ...one }: Notification): Record<string, string> {
  const subject =
    one.kind === 'payment'
      ? { 'ipn.transaction_id': one.transactionId }
      : { 'ipn.refund_id': one.requestId }
  return { 'ipn.merchant_code': merchantCode, ...subject }
}
