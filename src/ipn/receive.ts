import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Config } from '../config/config.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import { createNotificationReader, type Notification } from '../gateway/notification.ts'
import { tryParse } from '../gateway/parse-body.ts'
import { describeMethod } from '../http/app.ts'
import { isEncoded, readBody } from '../http/body.ts'
import { compileNetworks, createAddressFinder, nameNetwork } from '../http/client-address.ts'
import { chooseRequestId } from '../http/raw-response.ts'
import type { ActiveSpan, SpanOptions } from '../platform/telemetry/tracing.ts'
import {
  CLOSE,
  createRefusalLog,
  type IpnAnswer,
  refuse,
  retryAfter,
  STORED,
  sendAnswer,
} from './answer.ts'
import { InboxFullError, type IpnContext } from './inbox.ts'
import { createRefusalLimits } from './refusal-limits.ts'

export function isIpnTarget(target = ''): boolean {
  return target === '/ipn' || target.startsWith('/ipn?')
}

/**
 * Serves `/ipn` on Node's own requests, because a framework would cost more than everything else. Status 200 with
 * `respcode` 0 is sent only after the commit; after any other answer the gateway sends the notification again.
 */
export function createNotificationServer(ctx: IpnContext) {
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)
  const intake = createIntake(ctx.config)
  const logRefusal = createRefusalLog(ctx)
  const { ipnAck, ipnReceived } = ctx.metrics

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    span: ActiveSpan,
  ): Promise<void> {
    const startedAt = performance.now()
    const address = findAddress(request)
    const answer = await receive(ctx, intake, request, address, span).catch(explainFailure)
    sendAnswer(response, answer, requestId, ctx.lifecycle.stopping.aborted)
    const { status, verdict } = answer
    ipnReceived.inc({ verdict })
    ipnAck.observe((performance.now() - startedAt) / 1000)
    span.setAttributes({ 'http.response.status_code': status, 'ipn.verdict': verdict })
    if (status >= 500) span.fail(verdict)
    if (verdict !== 'stored') logRefusal(answer, { address, requestId })
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    const requestId = chooseRequestId(request.headers['x-request-id'])
    void ctx.tracing.run(
      () => describeRequest(request, requestId),
      (span) => serve(request, response, requestId, span),
    )
  }
}

function explainFailure(error: unknown): IpnAnswer {
  return { ...refuse(error instanceof InboxFullError ? 'overloaded' : 'store_failed'), error }
}

const MAX_BODY_BYTES = 64 * 1024

function createIntake(config: Config) {
  const { IPN_ALLOW_CIDRS, IPN_ACCEPT_GET } = config
  return {
    methods: IPN_ACCEPT_GET ? ['POST', 'GET'] : ['POST'],
    isAllowed: IPN_ALLOW_CIDRS ? compileNetworks(IPN_ALLOW_CIDRS) : () => true,
    limits: { limit: MAX_BODY_BYTES, timeoutMs: config.bodyTimeoutMs },
    refusalLimits: createRefusalLimits(),
    read: createNotificationReader(config),
  }
}

type Intake = ReturnType<typeof createIntake>

/**
 * Verdicts that the gateway never causes. One of an unknown account, or a `recut` one, may be well signed. A body that
 * a lost connection cut off counts too, which harms no gateway behind a bad line: the count decides only how bad ones
 * are answered. Well-signed ones wait only for CPU time, of which a cut-off body is charged what its size costs.
 */
const BAD: ReadonlySet<IpnAnswer['verdict']> = new Set(['malformed', 'bad_signature'])

/**
 * Receives one notification, the cheapest checks first:
 *
 * 1. check the method, the address, the room in the inbox, and whether its network was refused too often;
 * 2. read the body;
 * 3. parse it and verify its signature;
 * 4. store it and make its transaction due, in one commit, which it shares with others.
 *
 * A refusal in steps 2 to 4 is charged to the sender's network.
 * @throws InboxFullError and database errors
 */
async function receive(
  ctx: IpnContext,
  { methods, isAllowed, limits, refusalLimits, read }: Intake,
  incoming: IncomingMessage,
  address: string,
  span: ActiveSpan,
): Promise<IpnAnswer> {
  const network = nameNetwork(address) // 1
  if (!methods.includes(incoming.method ?? '')) {
    return refuse('method', `use ${methods.join(' or ')}`, { allow: methods.join(', ') })
  }
  if (!isAllowed(address)) return refuse('address')
  if (ctx.inbox.isFull()) throw new InboxFullError('too many notifications wait for the database')
  const waitMs = refusalLimits.measureWait(network)
  if (waitMs > 0) return answerUnread(waitMs)

  const request = await readRequest(incoming, limits) // 2
  // Other requests of the network may have used up its share in the meantime.
  const stillMs = refusalLimits.measureWait(network)
  if (stillMs > 0) return answerUnread(stillMs)
  const charge = (answer: IpnAnswer, bytes: number, tookMs: number) => {
    const badMs = refusalLimits.charge(network, { isBad: BAD.has(answer.verdict), bytes, tookMs })
    return badMs > 0 ? refuse('throttled', undefined, retryAfter(badMs)) : answer
  }
  if ('status' in request) {
    const announced = Number(incoming.headers['content-length'] ?? MAX_BODY_BYTES)
    return charge(request, Math.min(MAX_BODY_BYTES, announced), 0)
  }

  const startedAt = performance.now()
  const found = read(request.format, request.body) // 3
  const tookMs = performance.now() - startedAt
  const bytes = request.body.length
  if ('why' in found) return charge(refuse(found.verdict, found.why), bytes, tookMs)
  if (ctx.tracing.enabled) traceSubject(ctx, span, found)

  const receipt = await ctx.inbox.store(Object.assign(found, { address })) // 4
  return receipt === 'stored' ? STORED : charge(refuse('recut'), bytes, tookMs)
}

/** 503 instead of 429: the unread notification may be well signed, and then the gateway has to send it again. */
function answerUnread(ms: number): IpnAnswer {
  const why = 'too many notifications of this network were refused, send it again'
  return { ...refuse('throttled', why, { ...retryAfter(ms), ...CLOSE }), status: 503 }
}

async function readRequest(
  incoming: IncomingMessage,
  limits: Intake['limits'],
): Promise<{ format: 'json' | 'form'; body: string } | IpnAnswer> {
  if (incoming.method === 'GET') {
    const [, body = ''] = (incoming.url ?? '').split(/\?([^#]*)/s)
    return { format: 'form', body }
  }
  const format = findFormat(incoming.headers['content-type'] ?? '')
  if (!format) return refuse('content_type')
  const body = await readBody(incoming, limits)
  if (body.kind !== 'whole') return UNREAD[body.kind]
  const text = tryParse(() => UTF8.decode(body.bytes))
  // NUL is valid UTF-8, but a Postgres text column rejects it.
  if (text !== undefined && !text.includes('\0')) return { format, body: text }
  return isEncoded(incoming.headers)
    ? refuse('content_type', 'send the body uncompressed')
    : refuse('malformed', 'the body is not UTF-8 text')
}

const UNREAD = {
  too_large: refuse('too_large', undefined, CLOSE),
  too_slow: refuse('too_slow', undefined, CLOSE),
  broken: refuse('malformed', 'the body is incomplete', CLOSE),
  over_budget: refuse('overloaded', undefined, { ...retryAfter(1_000), ...CLOSE }),
}

function findFormat(contentType: string): 'json' | 'form' | undefined {
  if (contentType === 'application/json') return 'json'
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return 'json'
  return type === 'application/x-www-form-urlencoded' ? 'form' : undefined
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** Links the sender's trace instead of continuing it: a sender that is not authenticated must not decide sampling. */
function describeRequest(request: IncomingMessage, requestId: string): SpanOptions {
  const method = describeMethod(request.method ?? '')
  const attributes = { 'http.request.method': method, 'http.route': '/ipn' }
  const [link] = [request.headers.traceparent].flat()
  return { name: `${method} /ipn`, kind: 'server', attributes, link, requestId }
}

/** Names the notification's subject in its trace, which the query of the transaction continues. */
function traceSubject({ tracing }: IpnContext, span: ActiveSpan, found: Notification): void {
  const [name, id] =
    found.kind === 'refund' ? ['refund', found.requestId] : ['transaction', found.transactionId]
  span.setAttributes({ 'ipn.merchant_code': found.merchantCode, [`ipn.${name}_id`]: id })
  if (found.kind === 'payment') tracing.remember(formatTransactionKey(found))
}
