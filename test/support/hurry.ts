import { onTestFinished, vi } from 'vitest'

/**
 * Shortens the timers of `ms` that are set in this process until the test is over.
 * @param first of the first one, `others` of those after it
 */
export function hurry(ms: number, first: number, others = first): void {
  const start = globalThis.setTimeout
  let next = first
  function hurried(run: () => void, after?: number): NodeJS.Timeout {
    if (after !== ms) return start(run, after)
    const timer = start(run, next)
    next = others
    return timer
  }
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(Object.assign(hurried, start))
  onTestFinished(() => void vi.restoreAllMocks())
}
