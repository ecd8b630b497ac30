import { AbortError, TimeoutError } from './errors.ts'

/** The signals that can abort a call: the client's and the call's own. */
export type Signals = readonly AbortSignal[]

/** The longest delay of a timer (ms); a longer one would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Runs `work` for at most `ms` milliseconds. The signal it gets is aborted when it ends in any way. A
 * `fetch` that ignores signals is abandoned.
 * @throws AbortError, TimeoutError, or the error of `work`
 */
export function runWithin<T>(
  ms: number,
  signals: Signals,
  name: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return runUntilAborted(signals, (resolve, reject) => {
    const controller = new AbortController()
    const timer = startTimer(ms, () =>
      reject(new TimeoutError(`${name}: timed out after ${Math.round(ms)} ms`)),
    )
    work(controller.signal).then(resolve, reject)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  })
}

/**
 * Waits for `ms` milliseconds.
 * @throws AbortError as soon as one of the signals is aborted
 */
export function pause(ms: number, signals: Signals): Promise<void> {
  return runUntilAborted(signals, (resolve) => {
    const timer = startTimer(ms, resolve)
    return () => clearTimeout(timer)
  })
}

/** Removes its listeners: a signal can live as long as the program and see a million calls. */
function runUntilAborted<T>(
  signals: Signals,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T> {
  const aborted = signals.find((signal) => signal.aborted)
  if (aborted) return Promise.reject(makeAbortError(aborted))
  let stop = () => {}
  const listeners = signals.map((signal) => ({ signal, abort: () => {} }))
  const run = new Promise<T>((resolve, reject) => {
    for (const listener of listeners) {
      listener.abort = () => reject(makeAbortError(listener.signal))
      listener.signal.addEventListener('abort', listener.abort)
    }
    stop = start(resolve, reject)
  })
  return run.finally(() => {
    for (const { signal, abort } of listeners) signal.removeEventListener('abort', abort)
    stop()
  })
}

function makeAbortError({ reason }: AbortSignal): AbortError {
  return new AbortError('The call was aborted', { cause: reason })
}

function startTimer(ms: number, fire: () => void): ReturnType<typeof setTimeout> | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(fire, Math.min(ms, MAX_TIMER_MS))
}
