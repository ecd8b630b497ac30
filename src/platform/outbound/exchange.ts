import { type Dispatcher, Pool } from 'undici'
import { readErrorCode } from '../error-code.ts'

type ExchangeRequest = {
  /** Required if the dispatcher connects to more than one origin. */
  origin?: string
  path: string
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body: string
  timeoutMs: number
  /** A longer answer is not read to its end, but its status is returned. By default 1 MiB. */
  maxAnswerBytes?: number
  /** Ends the exchange early, like a time-out. */
  signal?: AbortSignal | undefined
}

export type ExchangeResult =
  | { kind: 'answer'; status: number; body: Buffer }
  /** Nothing of the request was written, so the remote side cannot have acted. */
  | { kind: 'unavailable'; reason: string; timedOut?: true }
  /** Something was written, but no complete answer arrived (`part` of it), so the remote side may have acted. */
  | { kind: 'unknown'; reason: string; status?: number; timedOut?: true; part?: Buffer }

const MAX_ANSWER_BYTES = 1024 * 1024

/**
 * Opens a connection pool to one origin. The exchange's time-out is the only one; it also limits establishing a
 * connection. Certificates are verified whatever `NODE_TLS_REJECT_UNAUTHORIZED` says.
 */
export function openPool(
  origin: string,
  { connections, timeoutMs }: { connections: number; timeoutMs: number },
): Pool {
  return new Pool(origin, {
    connections,
    pipelining: 1,
    connect: { timeout: timeoutMs, rejectUnauthorized: true },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/**
 * Sends one request once: it follows no redirect and retries nothing. Never rejects. If the request had been passed
 * to a connected socket, the result is `unknown`, not `unavailable`, whatever the error.
 */
export function exchange(pool: Dispatcher, request: ExchangeRequest): Promise<ExchangeResult> {
  const { origin, path, method, headers, body, maxAnswerBytes = MAX_ANSWER_BYTES } = request
  const { timeoutMs, signal } = request
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve({ kind: 'unavailable', reason: 'interrupted' })
    let controller: Dispatcher.DispatchController | undefined
    let status: number | undefined
    let ended = false
    const chunks: Buffer[] = []
    let size = 0

    function end(result: ExchangeResult): void {
      if (ended) return
      ended = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', interrupt)
      resolve(result)
    }
    function fail(reason: string, more: { timedOut?: true } = {}): void {
      if (!controller) {
        end({ kind: 'unavailable', reason, ...more })
        return
      }
      const part = chunks.length > 0 ? { part: Buffer.concat(chunks) } : {}
      const head = status === undefined ? {} : { status }
      end({ kind: 'unknown', reason, ...head, ...more, ...part })
      controller.abort(new Error(reason))
    }
    const interrupt = () => fail('interrupted')
    const expire = () => fail(`no answer within ${timeoutMs} ms`, { timedOut: true })
    const timer = setTimeout(expire, timeoutMs)
    signal?.addEventListener('abort', interrupt)

    pool.dispatch(
      { ...(origin === undefined ? {} : { origin }), path, method, headers, body },
      {
        onRequestStart(started) {
          // The exchange ended while connecting, or the dispatcher retries: nothing may be written.
          if (ended || controller) return started.abort(new Error('not sent'))
          controller = started
        },
        onResponseStart(_controller, statusCode) {
          status = statusCode
        },
        onResponseData(_controller, chunk) {
          size += chunk.length
          chunks.push(chunk)
          if (size > maxAnswerBytes) fail(`the answer exceeds ${maxAnswerBytes} bytes`)
        },
        onResponseEnd() {
          end({ kind: 'answer', status: status ?? 0, body: Buffer.concat(chunks) })
        },
        onResponseError(_controller, error) {
          // Not the message, which could quote addresses or content.
          const reason = readErrorCode(error) ?? error.name
          fail(reason, reason === 'UND_ERR_CONNECT_TIMEOUT' ? { timedOut: true } : {})
        },
      },
    )
  })
}
