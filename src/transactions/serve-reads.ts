import type { IncomingMessage, ServerResponse } from 'node:http'
import { listAccounts, parseBearer } from '../access/authenticate.ts'
import { createAddressFinder } from '../http/client-address.ts'
import { explainError, writeProblem } from '../http/problems.ts'
import {
  chooseRequestId,
  createRequestMeter,
  matchesEtag,
  SECURITY_HEADERS,
} from '../http/raw-response.ts'
import { findTransaction } from './find-transaction.ts'
import type { FoundTransaction, TransactionsContext } from './types.ts'
import { formatEtag, showTransaction } from './view.ts'

/** Serves a request, or returns `false` and leaves it to the framework. */
export type ReadServer = (request: IncomingMessage, response: ServerResponse) => boolean

type AdmittedRead = {
  id: string
  merchants: readonly string[]
  /** What is left of the key's rate. */
  limits: Record<string, string>
}

type ReadResponse = { status: number; headers: Record<string, string>; body?: string }

/** Every other id is left to the framework, with its escapes and its checks. */
const TARGET = /^\/v1\/transactions\/([\w-]{1,128})$/

const ROUTE = '/v1/transactions/{transactionId}'

/**
 * Serves the plain read of a transaction on the server's own requests, exactly as the framework would, whose
 * routing and response objects cost more than the rest of such a read. Whatever is unusual is left to the
 * framework: a query string, a key that is not in the cache, has no scope, is bound to networks or at its limits,
 * a body, tracing.
 */
export function createReadServer(ctx: TransactionsContext): ReadServer {
  const isValidHost = createHostCheck()
  const meter = createRequestMeter(ctx.metrics)
  const findAddress = createAddressFinder(ctx.config.TRUSTED_PROXIES)

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    { merchants, id: transactionId, limits }: AdmittedRead,
  ): Promise<void> {
    const startedAt = performance.now()
    const { headers, url: path = '' } = request
    const requestId = chooseRequestId(headers['x-request-id'])
    let read: ReadResponse
    try {
      const found = await findTransaction(ctx, merchants, transactionId)
      read = describeFound(found, headers['if-none-match'])
    } catch (error) {
      const failed = { requestId, method: 'GET', path }
      read = writeProblem(explainError(ctx.log, error, failed), requestId)
    }
    read.headers = { ...read.headers, ...limits }
    send(response, read, requestId, ctx.stopping.aborted)
    meter(ROUTE, 'GET', read.status, performance.now() - startedAt)
  }

  return (request, response) => {
    const id = ctx.tracing.enabled ? undefined : readPlainTarget(request)
    if (id === undefined || !isValidHost(request.headers.host)) return false
    const text = parseBearer(request.headers.authorization)
    const key = text === undefined ? undefined : ctx.keys.peek(text)
    if (!key?.scopes.includes('payments:read') || key.networks) return false
    const admission = ctx.keyLimits.admit(key, false)
    if (admission.refusal) return false
    ctx.keyUses.note(key.id, findAddress(request))
    const { merchants } = listAccounts(key, ctx.merchants)
    const limits = admission.headers
    void serve(request, response, { id, merchants, limits }).finally(admission.leave)
    return true
  }
}

function readPlainTarget({ method, url, headers, rawHeaders }: IncomingMessage) {
  if (method !== 'GET' || url === undefined) return undefined
  const id = TARGET.exec(url)?.[1]
  if (id === undefined || headers['content-length'] || headers['transfer-encoding'])
    return undefined
  // Node reads the first of several; the framework joins them.
  const keys = rawHeaders.filter((name) => name.length === 13 && /^authorization$/i.test(name))
  return keys.length === 1 ? id : undefined
}

/** Clients send the same host again and again: only another one than the last is parsed. */
function createHostCheck() {
  let valid = ''
  return (host: string | undefined): boolean => {
    if (!host) return false
    if (host === valid) return true
    if (!/^[\w.-]+(:\d{1,5})?$/.test(host) || !URL.canParse(`http://${host}/`)) return false
    valid = host
    return true
  }
}

function describeFound(found: FoundTransaction, etags: string | undefined): ReadResponse {
  const etag = formatEtag(found)
  const headers = { etag, 'cache-control': 'private, no-cache' }
  if (matchesEtag(etags, etag)) return { status: 304, headers }
  return {
    status: 200,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(showTransaction(found)),
  }
}

function send(
  response: ServerResponse,
  { status, headers, body }: ReadResponse,
  requestId: string,
  stopping: boolean,
): void {
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    ...headers,
    'x-request-id': requestId,
    ...(body === undefined ? undefined : { 'content-length': Buffer.byteLength(body) }),
    // A client that keeps its connection open would delay the stop by seconds.
    ...(stopping ? { connection: 'close' } : undefined),
  })
  response.end(body)
}
