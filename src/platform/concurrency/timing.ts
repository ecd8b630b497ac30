type Doubling = { base: number; max: number }

/** How long to wait after the n-th poll without a final answer: doubles each time, without jitter (ms). */
export function repoll(polls: number, { base, max }: Doubling): number {
  return Math.min(max, base * 2 ** (polls - 1))
}

/** The same after failures, with full jitter, so that a recovering gateway does not get all retries at once. */
export function backoff(failures: number, wait: Doubling, random = Math.random): number {
  return Math.round(random() * repoll(failures, wait))
}

/**
 * Starts a timer on both clocks of the process: the monotonic clock stops while a virtual machine is paused, and the
 * other can be set back.
 * @returns a function that returns what is left (ms)
 */
export function startTimer(ms: number): () => number {
  const [monotonicEnd, end] = [performance.now() + ms, Date.now() + ms]
  return () => Math.min(monotonicEnd - performance.now(), end - Date.now())
}

/** Work was not done in time, or could not even begin. */
export class TimeoutError extends Error {}

/** @throws TimeoutError after `ms`; the work itself is not cancelled */
export async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`not done within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Shares an expensive read: callers wait for the same run, and its result, even a failure, is reused for `reuseMs`. */
export function shareRuns<T>(
  run: () => Promise<T>,
  reuseMs: number | ((run: { tookMs: number; failed: boolean }) => number),
): () => Promise<T> {
  let newest: Promise<T> | undefined
  let validUntil = 0
  return () => {
    const startedAt = performance.now()
    if (newest && startedAt < validUntil) return newest
    const end = (failed: boolean) => {
      const endedAt = performance.now()
      const ended = { tookMs: endedAt - startedAt, failed }
      validUntil = endedAt + (typeof reuseMs === 'number' ? reuseMs : reuseMs(ended))
    }
    validUntil = Number.POSITIVE_INFINITY
    newest = run()
    newest.then(
      () => end(false),
      () => end(true),
    )
    return newest
  }
}

/**
 * Runs the work under a signal that aborts when either of two does. `AbortSignal.any` would leak: each derived signal
 * leaves a weak reference at a signal that lives as long as the process (Node 20.20).
 */
export async function withEitherSignal<T>(
  signals: readonly [AbortSignal, AbortSignal],
  work: (either: AbortSignal) => Promise<T>,
): Promise<T> {
  const either = new AbortController()
  const abort = () => either.abort()
  if (signals.some(({ aborted }) => aborted)) abort()
  for (const signal of signals) signal.addEventListener('abort', abort)
  try {
    return await work(either.signal)
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', abort)
  }
}
