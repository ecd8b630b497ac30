/**
 * Shares an expensive read between all who ask for it: concurrent callers wait for the same run, and its result, a
 * failure too, is reused for `reuseMs` after it ended. However many ask, it runs once at a time, with that pause between.
 */
export function shareRuns<T>(run: () => Promise<T>, reuseMs: number): () => Promise<T> {
  let newest: Promise<T> | undefined
  let validUntil = 0
  function end(): void {
    validUntil = performance.now() + reuseMs
  }
  return () => {
    if (newest && performance.now() < validUntil) return newest
    validUntil = Number.POSITIVE_INFINITY
    newest = run()
    newest.then(end, end)
    return newest
  }
}
