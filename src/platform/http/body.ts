import type { IncomingMessage } from 'node:http'

export type BodyResult =
  | { kind: 'whole'; bytes: Buffer }
  | { kind: 'too_large' }
  | { kind: 'too_slow' }
  | { kind: 'broken' }
  /** The bodies in flight already hold all the memory they may. */
  | { kind: 'over_budget' }

/** Limits the memory that bodies in flight hold together, beyond the first few KiB of each. */
export type BodyBudget = { take(bytes: number): boolean; release(bytes: number): void }

/** Shared by all routes: many slow senders must not exhaust the memory (bytes). */
const BUDGET_BYTES = 32 * 1024 * 1024
/** Not counted: a small body is always read, however many large ones arrive slowly (bytes). */
const FREE_BYTES = 4 * 1024

/** Creates the budget for all bodies of a process: 32 MiB, unless a test sets another size. */
export function createBodyBudget(bytes = BUDGET_BYTES): BodyBudget {
  let left = bytes
  return {
    take(wanted) {
      if (wanted > left) return false
      left -= wanted
      return true
    },
    release(released) {
      left += released
    },
  }
}

/**
 * Reads a request's body, at most `limit` bytes within `timeoutMs`. Never rejects. The rest of a refused
 * body is not read, so the connection should be closed after the response.
 */
export function readBody(
  request: IncomingMessage,
  { limit, timeoutMs, budget }: { limit: number; timeoutMs: number; budget: BodyBudget },
): Promise<BodyResult> {
  if (request.destroyed) return Promise.resolve({ kind: 'broken' })
  if (Number(request.headers['content-length']) > limit) {
    return Promise.resolve({ kind: 'too_large' })
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    let taken = 0
    const timer = setTimeout(() => end({ kind: 'too_slow' }), timeoutMs)

    function end(result: BodyResult): void {
      clearTimeout(timer)
      budget.release(taken)
      taken = 0
      request.off('data', append).off('end', finish).off('close', fail).off('error', fail)
      if (result.kind !== 'whole') request.pause()
      resolve(result)
    }
    function append(chunk: Buffer): void {
      size += chunk.length
      if (size > limit) {
        end({ kind: 'too_large' })
        return
      }
      const more = Math.max(0, size - FREE_BYTES) - taken
      if (!budget.take(more)) {
        end({ kind: 'over_budget' })
        return
      }
      taken += more
      chunks.push(chunk)
    }
    function finish(): void {
      end({ kind: 'whole', bytes: Buffer.concat(chunks) })
    }
    function fail(): void {
      end({ kind: 'broken' })
    }
    request.on('data', append).on('end', finish).on('close', fail).on('error', fail)
  })
}
