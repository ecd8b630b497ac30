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

function runUntilAborted<T>(
  signals: Signals,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T> {
  const aborted = signals.find((signal) => signal.aborted)
  if (aborted) return Promise.reject(makeAbortError(aborted))
  let stop = () => {}
  let ignores: (() => void)[] = []
  const run = new Promise<T>((resolve, reject) => {
    ignores = signals.map((signal) => onAbort(signal, () => reject(makeAbortError(signal))))
    stop = start(resolve, reject)
  })
  return run.finally(() => {
    for (const ignore of ignores) ignore()
    stop()
  })
}

/** What each signal aborts now, and the one listener that does. */
const listening = new WeakMap<AbortSignal, { aborts: Set<() => void>; listener: () => void }>()

/**
 * Adds one listener for all calls, as Node warns of a leak at the eleventh, and removes it after the last: a signal can
 * live as long as the program and see a million calls.
 * @returns a function that ends this
 */
function onAbort(signal: AbortSignal, abort: () => void): () => void {
  const { aborts, listener } = listening.get(signal) ?? listen(signal)
  aborts.add(abort)
  return () => {
    if (!aborts.delete(abort) || aborts.size > 0) return
    signal.removeEventListener('abort', listener)
    listening.delete(signal)
  }
}

function listen(signal: AbortSignal) {
  const aborts = new Set<() => void>()
  const listener = () => {
    for (const abort of aborts) abort()
  }
  signal.addEventListener('abort', listener)
  const one = { aborts, listener }
  listening.set(signal, one)
  return one
}

function makeAbortError({ reason }: AbortSignal): AbortError {
  return new AbortError('The call was aborted', { cause: reason })
}

function startTimer(ms: number, fire: () => void): ReturnType<typeof setTimeout> | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(fire, Math.min(ms, MAX_TIMER_MS))
}
