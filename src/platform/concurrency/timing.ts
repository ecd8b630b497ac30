/**
 * Returns how long to wait after the n-th failure in a row: exponential backoff with full jitter, from 0 to
 * `base` · 2ⁿ⁻¹ (at most `max`), so that a recovering gateway does not get all retries at once. All in ms.
 */
export function backoff(
  failures: number,
  { base, max }: { base: number; max: number },
  random: () => number = Math.random,
): number {
  return Math.round(random() * double(failures, base, max))
}

/** Returns how long to wait after the n-th poll in a row without a final answer: doubling, without jitter. All in ms. */
export function repoll(polls: number, { base, max }: { base: number; max: number }): number {
  return double(polls, base, max)
}

function double(n: number, base: number, max: number): number {
  return Math.min(max, base * 2 ** (n - 1))
}

/** Work took longer than it may. */
export class TimeoutError extends Error {}

/**
 * Resolves with the work's result, or rejects after `ms`; the work itself is not cancelled.
 * @throws TimeoutError when the time is over
 */
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

/**
 * Shares an expensive read between all who ask for it: concurrent callers wait for the same run, and its result, a
 * failure too, is reused for `reuseMs` after it ended. However many ask, it runs once at a time, with that pause between.
 */
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
 * Runs the work under a signal that aborts when either of two does. `AbortSignal.any` must not be given a
 * signal that lives as long as the process: each derived signal leaves a weak reference there (Node 20.20:
 * 67 bytes each).
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
