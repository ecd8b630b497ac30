import type { IncomingMessage, ServerResponse } from 'node:http'
import { listAccounts, parseBearer } from '../access/authenticate.ts'
import { createAddressFinder } from '../http/client-address.ts'
import { explainError, writeProblem } from '../http/problems.ts'
import { chooseRequestId, createRequestMeter, SECURITY_HEADERS } from '../http/raw-response.ts'
import { findTransaction } from './find-transaction.ts'
import type { TransactionsContext } from './types.ts'
import { answerFound } from './view.ts'

type Answer = { status: number; headers: Record<string, string>; body: string | null }

/** The framework serves every other id, because it decodes and checks them. */
const TARGET = /^\/v1\/transactions\/([\w-]{1,128})$/

const ROUTE = '/v1/transactions/{transactionId}'

/**
 * Serves the plain read of a transaction on Node's own requests, exactly as the framework would, whose routing and
 * response objects cost more than the rest of such a read. Everything unusual is left to the framework: tracing, a
 * query string, a body, and a key that is not cached, lacks the scope, is bound to networks or at its limits.
 */
export function createReadServer(ctx: TransactionsContext) {
  const meter = createRequestMeter(ctx.metrics)
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)

  async function read(
    { headers, url: path = '' }: IncomingMessage,
    merchants: readonly string[],
    transactionId: string,
    requestId: string,
  ): Promise<Answer> {
    try {
      const found = await findTransaction(ctx, merchants, transactionId)
      return answerFound(found, headers['if-none-match'])
    } catch (error) {
      const failed = { requestId, method: 'GET', path }
      return writeProblem(explainError(ctx.log, error, failed), requestId)
    }
  }

  /** Returns `false` for a request that it leaves to the framework. */
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const id = ctx.tracing.enabled ? undefined : readPlainTarget(request)
    if (id === undefined) return false
    const text = parseBearer(request.headers.authorization)
    const key = text === undefined ? undefined : ctx.access.keys.peek(text)
    if (!key?.scopes.includes('payments:read') || key.networks) return false
    const admission = ctx.access.limits.admit(key, false)
    if (admission.refusal) return false
    ctx.access.uses.note(key.id, findAddress(request))
    const startedAt = performance.now()
    const requestId = chooseRequestId(request.headers['x-request-id'])
    const { merchants } = listAccounts(key, ctx.access.merchants)
    const answering = read(request, merchants, id, requestId).then(({ status, headers, body }) => {
      const all = { ...headers, ...admission.headers, 'x-request-id': requestId }
      send(response, { status, headers: all, body }, ctx.lifecycle.stopping.aborted)
      meter(ROUTE, 'GET', status, performance.now() - startedAt)
    })
    void answering.finally(admission.leave)
    return true
  }
}

function readPlainTarget({ method, url, headers, rawHeaders }: IncomingMessage) {
  if (method !== 'GET' || url === undefined) return undefined
  const id = TARGET.exec(url)?.[1]
  if (id === undefined || headers['content-length'] || headers['transfer-encoding'])
    return undefined
  // Of several headers, Node reads the first, whereas the framework joins them.
  const keys = rawHeaders.filter((name) => name.length === 13 && /^authorization$/i.test(name))
  return keys.length === 1 ? id : undefined
}

function send(response: ServerResponse, { status, headers, body }: Answer, stopping: boolean) {
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    ...headers,
    ...(body === null ? undefined : { 'content-length': Buffer.byteLength(body) }),
    // Otherwise a client that keeps its connection open delays the shutdown by seconds.
    ...(stopping ? { connection: 'close' } : undefined),
  })
  response.end(body ?? undefined)
}
