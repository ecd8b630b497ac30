import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../config/config.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import {
  createNotificationReader,
  type Notification,
  type NotificationReader,
} from '../gateway/notification.ts'
import { describeMethod } from '../http/app.ts'
import { type BodyBudget, readBody } from '../http/body.ts'
import { compileNetworks, createAddressFinder, nameNetwork } from '../http/client-address.ts'
import { chooseRequestId } from '../http/raw-response.ts'
import type { ActiveSpan, SpanOptions } from '../platform/telemetry/tracing.ts'
import {
  answerThrottled,
  answerUnread,
  CLOSE,
  createIpnMeter,
  createRefusalLog,
  type IpnAnswer,
  OVERLOADED,
  sendAnswer,
} from './answer.ts'
import { createGuard, type Guard } from './guard.ts'
import { InboxFullError, type IpnContext } from './inbox.ts'

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
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)
  const intake = createIntake(ctx.config, budget)
  const refusals = createRefusalLog(ctx)
  const meter = createIpnMeter(ctx)

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    span: ActiveSpan,
  ): Promise<void> {
    const startedAt = performance.now()
    const { method = '' } = request
    const address = findAddress(request)
    let answer: IpnAnswer
    try {
      answer = await receive(ctx, intake, request, address, span)
    } catch (error) {
      answer = answerFailure(error)
      refusals.logFailure(error, answer, { address, requestId })
    }
    sendAnswer(response, answer, requestId, ctx.stopping.aborted)
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

const MAX_BODY_BYTES = 64 * 1024

/** What the settings make of the intake. */
type Intake = {
  methods: readonly string[]
  isAllowed: (address: string) => boolean
  body: { limit: number; timeoutMs: number; budget: BodyBudget }
  guard: Guard
  read: NotificationReader
}

function createIntake(config: Config, budget: BodyBudget): Intake {
  const { IPN_ALLOW_CIDRS, IPN_ACCEPT_GET } = config
  return {
    methods: IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST'],
    isAllowed: IPN_ALLOW_CIDRS ? compileNetworks(IPN_ALLOW_CIDRS) : () => true,
    body: { limit: MAX_BODY_BYTES, timeoutMs: config.bodyTimeoutMs, budget },
    guard: createGuard(),
    read: createNotificationReader(config),
  }
}

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

/**
 * Receives a notification: the cheapest checks first, then its body, what it states and whether it is signed; then it is
 * stored, and its transaction is due, in one commit.
 * @throws InboxFullError and database errors: `answerFailure` translates them
 */
async function receive(
  ctx: IpnContext,
  { methods, isAllowed, body: limits, guard, read }: Intake,
  incoming: IncomingMessage,
  address: string,
  span: ActiveSpan,
): Promise<IpnAnswer> {
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
  const request = await readRequest(incoming, limits)
  // Others of the network may have arrived meanwhile.
  const stillMs = guard.measureWait(network)
  if (stillMs > 0) return answerUnread(stillMs)
  const refuse = (answer: IpnAnswer, bytes: number, tookMs: number) => {
    const badMs = guard.charge(network, { isBad: BAD.has(answer.verdict), bytes, tookMs })
    return badMs > 0 ? answerThrottled(badMs) : answer
  }
  if ('status' in request) {
    const announced = Number(incoming.headers['content-length'] ?? MAX_BODY_BYTES)
    return refuse(request, Math.min(MAX_BODY_BYTES, announced), 0)
  }
  const startedAt = performance.now()
  const found = read(request.format, request.body)
  // All that a refused notification takes: what follows waits for the commit.
  const tookMs = performance.now() - startedAt
  const bytes = request.body.length
  if ('why' in found) return refuse({ status: STATUS[found.verdict], ...found }, bytes, tookMs)
  if (ctx.tracing.enabled) {
    span.setAttributes(describeSubject(found))
    if (found.kind === 'payment') ctx.tracing.remember(formatTransactionKey(found))
  }
  const receipt = await ctx.inbox.store(Object.assign(found, { address }))
  return receipt === 'stored' ? STORED : refuse(RECUT, bytes, tookMs)
}

/** The answer to a notification that could not be stored: the gateway has to send it again. */
function answerFailure(error: unknown): IpnAnswer {
  if (error instanceof InboxFullError) return OVERLOADED
  return { ...OVERLOADED, status: 500, verdict: 'store_failed' }
}

/**
 * Reads the parts of a notification request: of a GET its query string, of anything else its body.
 * @returns the request, or the answer that refuses it
 */
async function readRequest(
  incoming: IncomingMessage,
  limits: Intake['body'],
): Promise<{ format: 'json' | 'form'; body: string } | IpnAnswer> {
  if (incoming.method === 'GET') {
    const [, body = ''] = (incoming.url ?? '').split(/\?([^#]*)/s)
    return { format: 'form', body }
  }
  const format = findFormat(incoming.headers['content-type'] ?? '')
  if (!format) {
    const why = 'send application/json or application/x-www-form-urlencoded'
    return { status: 415, verdict: 'content_type', why }
  }
  const body = await readBody(incoming, limits)
  switch (body.kind) {
    case 'too_large': {
      const why = 'the body is larger than 64 KiB'
      return { status: 413, verdict: 'too_large', why, headers: CLOSE }
    }
    case 'too_slow': {
      const why = `the body did not arrive within ${limits.timeoutMs} ms`
      return { status: 408, verdict: 'too_slow', why, headers: CLOSE }
    }
    case 'broken':
      return { status: 400, verdict: 'malformed', why: 'the body is incomplete', headers: CLOSE }
    case 'over_budget':
      return { ...OVERLOADED, headers: { ...OVERLOADED.headers, ...CLOSE } }
  }
  const text = decodeText(body.bytes)
  if (text !== undefined) return { format, body: text }
  return { status: 400, verdict: 'malformed', why: 'the body is not UTF-8 text' }
}

function findFormat(contentType: string): 'json' | 'form' | undefined {
  if (contentType === 'application/json') return 'json'
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return 'json'
  return type === 'application/x-www-form-urlencoded' ? 'form' : undefined
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** NUL is valid UTF-8, but a Postgres text column rejects it. */
function decodeText(bytes: Buffer): string | undefined {
  try {
    const text = UTF8.decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
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

/** What a received notification is about, for its trace, which the query that follows continues. */
function describeSubject({ merchantCode, ...one }: Notification): Record<string, string> {
  const subject =
    one.kind === 'payment'
      ? { 'ipn.transaction_id': one.transactionId }
      : { 'ipn.refund_id': one.requestId }
  return { 'ipn.merchant_code': merchantCode, ...subject }
}
