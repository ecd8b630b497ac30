import { type Dispatcher, Pool } from 'undici'

export type Exchange = {
  /** Where the connections are to more than one. */
  origin?: string
  path: string
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body: string
  timeoutMs: number
  /** An answer above this is not read on; its status is told all the same. */
  maxAnswerBytes?: number
  /** Ends the exchange early, as a time-out would. */
  signal?: AbortSignal | undefined
}

/** `late` says that the time was over. */
export type ExchangeResult =
  | { kind: 'answer'; status: number; body: Buffer }
  /** Not a byte of the request was written: the gateway cannot have acted. */
  | { kind: 'unavailable'; reason: string; late?: true }
  /** Something was written and no whole answer came back: the gateway may have acted. */
  | { kind: 'unknown'; reason: string; status?: number; late?: true }

const MAX_ANSWER_BYTES = 1024 * 1024

/**
 * Connections to one origin. The one time-out is the exchange's: a connection that is not made within it
 * is given up with it, because its place in the pool would be missing for the next call. Certificates are
 * verified whatever `NODE_TLS_REJECT_UNAUTHORIZED` says, against Node's authorities and `NODE_EXTRA_CA_CERTS`.
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
 * Sends one request over a pool, once: no redirect is followed and nothing is repeated. Never rejects.
 * What separates `unavailable` from `unknown` is whether the request had been handed to a connected
 * socket, not the kind of error.
 */
export function exchange(pool: Dispatcher, request: Exchange): Promise<ExchangeResult> {
  const { origin, path, method, headers, body, maxAnswerBytes = MAX_ANSWER_BYTES } = request
  return new Promise((resolve) => {
    let controller: Dispatcher.DispatchController | undefined
    let status: number | undefined
    let ended = false
    const chunks: Buffer[] = []
    let size = 0

    function end(result: ExchangeResult): void {
      if (ended) return
      ended = true
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', interrupt)
      resolve(result)
    }
    function fail(reason: string, more: { late?: true } = {}): void {
      if (controller) {
        end({ kind: 'unknown', reason, ...(status === undefined ? {} : { status }), ...more })
        controller.abort(new Error(reason))
      } else {
        end({ kind: 'unavailable', reason, ...more })
      }
    }
    function interrupt(): void {
      fail('interrupted')
    }

    const timer = setTimeout(
      () => fail(`no answer within ${request.timeoutMs} ms`, { late: true }),
      request.timeoutMs,
    )
    if (request.signal?.aborted) {
      interrupt()
      return
    }
    request.signal?.addEventListener('abort', interrupt)

    pool.dispatch(
      { ...(origin === undefined ? {} : { origin }), path, method, headers, body },
      {
        onRequestStart(started) {
          // Given up while connecting, or the pool tries again by itself: nothing may be written (now).
          if (ended || controller) return started.abort(new Error('not sent'))
          controller = started
        },
        onResponseStart(_controller, statusCode) {
          status = statusCode
        },
        onResponseData(_controller, chunk) {
          size += chunk.length
          if (size > maxAnswerBytes) return fail(`the answer exceeds ${maxAnswerBytes} bytes`)
          chunks.push(chunk)
        },
        onResponseEnd() {
          end({ kind: 'answer', status: status ?? 0, body: Buffer.concat(chunks) })
        },
        onResponseError(_controller, error) {
          const reason = describeError(error)
          fail(reason, reason === 'UND_ERR_CONNECT_TIMEOUT' ? { late: true } : {})
        },
      },
    )
  })
}

/** The error's code where it has one (`ECONNREFUSED`): the message could quote addresses or content. */
function describeError(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
