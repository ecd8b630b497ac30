import { AbortError, TimeoutError } from './errors.ts'

/** What may end a call before its time: the client's signal and the call's own. */
export type Signals = readonly AbortSignal[]

/** A timer takes no more (ms); a longer one would fire at once. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * Runs the work for at most `ms`; its signal is aborted when it is over in whatever way. A `fetch` that
 * does not listen to signals is left to itself.
 * @throws AbortError, TimeoutError, or what the work throws
 */
export function runWithin<T>(
  ms: number,
  signals: Signals,
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return runUntilAborted(signals, (resolve, reject) => {
    const controller = new AbortController()
    const timer = startTimer(ms, () =>
      reject(new TimeoutError(`${what}: not within ${Math.round(ms)} ms`)),
    )
    work(controller.signal).then(resolve, reject)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  })
}

/** @throws AbortError as soon as one of the signals is aborted */
export function pause(ms: number, signals: Signals): Promise<void> {
  return runUntilAborted(signals, (resolve) => {
    const timer = startTimer(ms, resolve)
    return () => clearTimeout(timer)
  })
}

/** Listeners are taken off again: a signal may live as long as the program, and see a million calls. */
function runUntilAborted<T>(
  signals: Signals,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T> {
  const aborted = signals.find((signal) => signal.aborted)
  if (aborted) return Promise.reject(makeAbortError(aborted))
  let stop = () => {}
  const watched = signals.map((signal) => ({ signal, abort: () => {} }))
  const run = new Promise<T>((resolve, reject) => {
    for (const one of watched) {
      one.abort = () => reject(makeAbortError(one.signal))
      one.signal.addEventListener('abort', one.abort)
    }
    stop = start(resolve, reject)
  })
  return run.finally(() => {
    for (const { signal, abort } of watched) signal.removeEventListener('abort', abort)
    stop()
  })
}

function makeAbortError({ reason }: AbortSignal): AbortError {
  return new AbortError('The call was aborted', { cause: reason })
}

function startTimer(ms: number, ring: () => void): ReturnType<typeof setTimeout> | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(ring, Math.min(ms, LONGEST_MS))
}
