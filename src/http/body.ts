import type { IncomingMessage } from 'node:http'

export type BodyResult =
  | { kind: 'whole'; bytes: Buffer }
  | { kind: 'too_large' }
  | { kind: 'too_slow' }
  | { kind: 'broken' }
  /** All the bodies on their way together hold more than may be. */
  | { kind: 'no_room' }

/** What bodies that are still on their way may hold together, beyond the first few KiB of each. */
export type Room = { take(bytes: number): boolean; give(bytes: number): void }

/** Of all routes together: a crowd of slow senders must not fill the memory (bytes). */
const ROOM_BYTES = 32 * 1024 * 1024
/** A small body always finds room, however many large ones are dripping in (bytes). */
const FREE_BYTES = 4 * 1024

/** One for all the bodies of a process: 32 MiB, unless a test says otherwise. */
export function createRoom(bytes = ROOM_BYTES): Room {
  let left = bytes
  return {
    take(wanted) {
      if (wanted > left) return false
      left -= wanted
      return true
    },
    give(back) {
      left += back
    },
  }
}

/**
 * Reads a request's body, at most `limit` bytes within `timeoutMs`. Never rejects; what is refused is
 * not read on, so the connection should be closed after the answer.
 */
export function readBody(
  request: IncomingMessage,
  { limit, timeoutMs, room }: { limit: number; timeoutMs: number; room: Room },
): Promise<BodyResult> {
  if (request.destroyed) return Promise.resolve({ kind: 'broken' })
  if (Number(request.headers['content-length']) > limit) {
    return Promise.resolve({ kind: 'too_large' })
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    let held = 0
    const timer = setTimeout(() => end({ kind: 'too_slow' }), timeoutMs)

    function end(result: BodyResult): void {
      clearTimeout(timer)
      room.give(held)
      held = 0
      request.off('data', take).off('end', finish).off('close', breakOff).off('error', breakOff)
      if (result.kind !== 'whole') request.pause()
      resolve(result)
    }
    function take(chunk: Buffer): void {
      size += chunk.length
      if (size > limit) {
        end({ kind: 'too_large' })
        return
      }
      const more = Math.max(0, size - FREE_BYTES) - held
      if (!room.take(more)) {
        end({ kind: 'no_room' })
        return
      }
      held += more
      chunks.push(chunk)
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
