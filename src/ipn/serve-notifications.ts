import type { IncomingMessage, ServerResponse } from 'node:http'
import { describeMethod } from '../http/app.ts'
import type { BodyBudget } from '../http/body.ts'
import { compileNetworks, findClientAddress } from '../http/client-address.ts'
import { chooseRequestId, SECURITY_HEADERS } from '../http/raw-response.ts'
import type { ActiveSpan, SpanOptions } from '../platform/telemetry/tracing.ts'
import type { IpnAnswer } from './answer.ts'
import type { IpnContext } from './context.ts'
import { answerFailure, createDecideAnswer } from './decide-answer.ts'
import { createIpnMeter } from './meter.ts'
import { createRefusalLog } from './refusal-log.ts'

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
      answer = await decideAnswer(request, address)
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
