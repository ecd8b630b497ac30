import type { IncomingMessage } from 'node:http'

export type BodyResult =
  | { kind: 'whole'; bytes: Buffer }
  | { kind: 'too_large' }
  | { kind: 'too_slow' }
  | { kind: 'broken' }

/**
 * Reads a request's body, at most `limit` bytes within `timeoutMs`. Never rejects; what is refused is
 * not read on, so the connection should be closed after the answer.
 */
export function readBody(
  request: IncomingMessage,
  { limit, timeoutMs }: { limit: number; timeoutMs: number },
): Promise<BodyResult> {
  if (request.destroyed) return Promise.resolve({ kind: 'broken' })
  if (Number(request.headers['content-length']) > limit) {
    return Promise.resolve({ kind: 'too_large' })
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => end({ kind: 'too_slow' }), timeoutMs)

    function end(result: BodyResult): void {
      clearTimeout(timer)
      request.off('data', take).off('end', finish).off('close', breakOff).off('error', breakOff)
      if (result.kind !== 'whole') request.pause()
      resolve(result)
    }
    function take(chunk: Buffer): void {
      size += chunk.length
      if (size > limit) end({ kind: 'too_large' })
      else chunks.push(chunk)
    }
    function finish(): void {
      end({ kind: 'whole', bytes: Buffer.concat(chunks) })
    }
    function breakOff(): void {
      end({ kind: 'broken' })
    }
    request.on('data', take).on('end', finish).on('close', breakOff).on('error', breakOff)
  })
}
