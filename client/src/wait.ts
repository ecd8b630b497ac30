import { pause, type Signals } from './abort.ts'
import { TimeoutError } from './errors.ts'
import type { Transport } from './http.ts'
import type { CallOptions } from './options.ts'

/** Default time-out of a wait (ms). */
const WAIT_TIMEOUT_MS = 300_000

/** How long one request asks the service to hold it (s): below the time-outs of common proxies. */
export const HOLD_S = 25

/** A response within this time was not held (ms). */
const NOT_HELD_MS = 500
const GAP_MS = 100
const GAP_MAX_MS = 5_000

/**
 * Polls until there is a result. Transient failures (no connection, a restart, 429, 5xx) do not end the
 * wait.
 * @param poll sends a request that the service answers within `wait` seconds; undefined means not yet
 * @throws TimeoutError if there is no result in time, and the errors of `poll`
 */
export async function waitFor<T>(
  transport: Transport,
  name: string,
  { signal, timeoutMs = WAIT_TIMEOUT_MS }: CallOptions,
  poll: (wait: number, options: CallOptions) => Promise<{ result: T } | undefined>,
): Promise<T> {
  const throttle = createThrottle(signal ? [...transport.signals, signal] : transport.signals)
  const end = performance.now() + timeoutMs
  for (;;) {
    const started = performance.now()
    const leftMs = end - started
    if (leftMs <= 0) throw new TimeoutError(`${name}: timed out after ${timeoutMs} ms`)
    const wait = Math.min(HOLD_S, Math.ceil(leftMs / 1000))
    const polled = await poll(wait, { signal, timeoutMs: leftMs })
    if (polled) return polled.result
    await throttle(started, end - performance.now())
  }
}

/**
 * Creates a throttle for polling: it delays the caller after consecutive responses that were not held.
 * These come from a service that is stopping or does not know the id yet, or through a proxy that does not
 * hold requests. The first such response causes no delay.
 */
export function createThrottle(
  signals: Signals,
): (started: number, leftMs: number) => Promise<void> {
  let consecutive = 0
  return async (started, leftMs) => {
    consecutive = performance.now() - started < NOT_HELD_MS ? consecutive + 1 : 0
    if (consecutive < 2) return
    const gap = Math.min(GAP_MAX_MS, GAP_MS * 2 ** (consecutive - 2))
    await pause(Math.max(0, Math.min(leftMs, gap * (0.5 + Math.random() / 2))), signals)
  }
}
