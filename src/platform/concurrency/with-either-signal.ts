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
