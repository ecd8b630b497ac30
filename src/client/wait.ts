import { pause, type Signals } from './abort.ts'
import { TimeoutError } from './errors.ts'
import type { CallOptions } from './options.ts'
import type { Transport } from './transport.ts'

/** For how long a wait goes on unless told otherwise (ms). */
const PATIENCE_MS = 300_000

/** For how long one request asks to be held (s): below the time-outs of usual proxies. */
export const HOLD_S = 25

/** An answer within this time was not held (ms). */
const AT_ONCE_MS = 500
const GAP_MS = 100
const GAP_MAX_MS = 5_000

/**
 * Looks until there is a result. What passes by itself (no connection, a restart, 429, 5xx) is sat out.
 * @param look asks for an answer that comes after `wait` seconds at the latest; undefined: not yet
 * @throws TimeoutError when there is no result in time, and what `look` throws
 */
export async function waitFor<T>(
  transport: Transport,
  what: string,
  { signal, timeoutMs = PATIENCE_MS }: CallOptions,
  look: (wait: number, options: CallOptions) => Promise<{ result: T } | undefined>,
): Promise<T> {
  const slowDown = createBrake(signal ? [...transport.signals, signal] : transport.signals)
  const end = performance.now() + timeoutMs
  for (;;) {
    const started = performance.now()
    const leftMs = end - started
    if (leftMs <= 0) throw new TimeoutError(`${what}: not within ${timeoutMs} ms`)
    const wait = Math.min(HOLD_S, Math.ceil(leftMs / 1000))
    const seen = await look(wait, { signal, timeoutMs: leftMs })
    if (seen) return seen.result
    await slowDown(started, end - performance.now())
  }
}

/**
 * Slows down who is answered at once again and again: by a service that stops, that does not know the id
 * yet, or behind a proxy that does not hold requests. The first such answer costs nothing.
 */
export function createBrake(signals: Signals): (started: number, leftMs: number) => Promise<void> {
  let inARow = 0
  return async (started, leftMs) => {
    inARow = performance.now() - started < AT_ONCE_MS ? inARow + 1 : 0
    if (inARow < 2) return
    const gap = Math.min(GAP_MAX_MS, GAP_MS * 2 ** (inARow - 2))
    await pause(Math.max(0, Math.min(leftMs, gap * (0.5 + Math.random() / 2))), signals)
  }
}
