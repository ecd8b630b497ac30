import type { Dispatcher } from 'undici'

export type Exchange = {
  path: string
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body: string
  timeoutMs: number
  /** Ends the exchange early, as a time-out would. */
  signal?: AbortSignal | undefined
}

export type ExchangeResult =
  | { kind: 'answer'; status: number; body: Buffer }
  /** Not a byte of the request was written: the gateway cannot have acted. */
  | { kind: 'unavailable'; reason: string }
  /** Something was written and no whole answer came back: the gateway may have acted. */
  | { kind: 'unknown'; reason: string; status?: number }

const MAX_ANSWER_BYTES = 1024 * 1024

/**
 * Sends one request over a pool, once: no redirect is followed and nothing is repeated. Never rejects.
 * What separates `unavailable` from `unknown` is whether the request had been handed to a connected
 * socket, not the kind of error.
 */
export function exchange(pool: Dispatcher, request: Exchange): Promise<ExchangeResult> {
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
    function fail(reason: string): void {
      if (controller) {
        end({ kind: 'unknown', reason, ...(status === undefined ? {} : { status }) })
        controller.abort(new Error(reason))
      } else {
        end({ kind: 'unavailable', reason })
      }
    }
    function interrupt(): void {
      fail('interrupted')
    }

    const timer = setTimeout(
      () => fail(`no answer within ${request.timeoutMs} ms`),
      request.timeoutMs,
    )
    if (request.signal?.aborted) {
      interrupt()
      return
    }
    request.signal?.addEventListener('abort', interrupt)

    pool.dispatch(
      { path: request.path, method: request.method, headers: request.headers, body: request.body },
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
          if (size > MAX_ANSWER_BYTES) return fail(`the answer exceeds ${MAX_ANSWER_BYTES} bytes`)
          chunks.push(chunk)
        },
        onResponseEnd() {
          end({ kind: 'answer', status: status ?? 0, body: Buffer.concat(chunks) })
        },
        onResponseError(_controller, error) {
          fail(describeError(error))
        },
      },
    )
  })
}

/** The error's code where it has one (`ECONNREFUSED`): the message could quote addresses or content. */
function describeError(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
