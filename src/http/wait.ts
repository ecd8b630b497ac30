/** Readers that wait for something to change, by key. One database listener wakes them all. */
export type Waiters<T> = {
  /** Starts to watch; call it before reading, so that no change falls between reading and waiting. */
  watch(key: string): Watch
  /** Reads once for all that wait on the key. */
  share(key: string, read: () => Promise<T>): Promise<T>
  wake(key: string): void
  /** It concerns all of them, or nobody knows whom: while the listener was away something may have been missed. */
  wakeAll(): void
  /** How many readers watch at this moment. */
  count(): number
}

export type Watch = {
  /** Resolves `true` when the key was woken since `watch`, `false` after `ms` or when `signal` aborts. */
  until(ms: number, signal?: AbortSignal): Promise<boolean>
  cancel(): void
}

export function createWaiters<T>(): Waiters<T> {
  const watchers = new Map<string, Set<() => void>>()
  const reads = new Map<string, Promise<T>>()

  function wake(key: string): void {
    // A read that is under way may have begun before the change: nobody may join it any more.
    reads.delete(key)
    for (const notify of watchers.get(key) ?? []) notify()
  }

  return {
    watch(key) {
      let woken = false
      let notify = () => {
        woken = true
      }
      const entry = () => notify()
      const set = watchers.get(key) ?? new Set()
      watchers.set(key, set.add(entry))

      function cancel(): void {
        set.delete(entry)
        if (set.size === 0 && watchers.get(key) === set) watchers.delete(key)
      }
      return {
        cancel,
        until: (ms, signal) =>
          new Promise((resolve) => {
            function end(result: boolean): void {
              clearTimeout(timer)
              signal?.removeEventListener('abort', giveUp)
              cancel()
              resolve(result)
            }
            function giveUp(): void {
              end(false)
            }
            const timer = setTimeout(giveUp, Math.max(0, ms))
            signal?.addEventListener('abort', giveUp)
            notify = () => end(true)
            if (woken) end(true)
            else if (signal?.aborted) end(false)
          }),
      }
    },
    share(key, read) {
      const running = reads.get(key)
      if (running) return running
      const started = read().finally(() => {
        if (reads.get(key) === started) reads.delete(key)
      })
      reads.set(key, started)
      return started
    },
    wake,
    wakeAll() {
      for (const key of [...watchers.keys()]) wake(key)
    },
    count: () => [...watchers.values()].reduce((sum, { size }) => sum + size, 0),
  }
}

/**
 * Works under a signal that either of two aborts. `AbortSignal.any` must not be given one that lives as
 * long as the process: a weak reference to every signal made of it stays there (Node 20.20: 67 bytes each).
 */
export async function workUnder<T>(
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
