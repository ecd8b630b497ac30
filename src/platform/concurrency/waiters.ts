export type Waiters<T> = ReturnType<typeof createWaiters<T>>

/** Creates readers that wait for a change, by key. One database listener wakes all of them. */
export function createWaiters<T>() {
  const watchers = new Map<string, Set<() => void>>()
  const reads = new Map<string, Promise<T>>()

  function wake(key: string): void {
    // A read in progress may have begun before the change: later readers must not share it.
    reads.delete(key)
    for (const wakeWatcher of watchers.get(key) ?? []) wakeWatcher()
  }

  return {
    /** Starts to watch a key. Call it before reading, so that no change falls between reading and waiting. */
    watch(key: string) {
      let isWoken = false
      let onWake = () => {}
      const entry = () => {
        isWoken = true
        onWake()
      }
      const set = (watchers.get(key) ?? new Set()).add(entry)
      watchers.set(key, set)
      function cancel(): void {
        set.delete(entry)
        if (set.size === 0 && watchers.get(key) === set) watchers.delete(key)
      }
      /** Resolves `true` when the key was woken since `watch`, `false` after `ms` or when `signal` aborts. */
      const wait = (ms: number, signal?: AbortSignal) =>
        new Promise<boolean>((resolve) => {
          function end(): void {
            clearTimeout(timer)
            signal?.removeEventListener('abort', end)
            cancel()
            resolve(isWoken)
          }
          const timer = setTimeout(end, Math.max(0, ms))
          signal?.addEventListener('abort', end)
          onWake = end
          if (isWoken || signal?.aborted) end()
        })
      return { cancel, wait }
    },
    /** Reads once for all readers that wait on the key. */
    shareRead(key: string, read: () => Promise<T>): Promise<T> {
      const running = reads.get(key)
      if (running) return running
      const started = read().finally(() => {
        if (reads.get(key) === started) reads.delete(key)
      })
      reads.set(key, started)
      return started
    },
    wake,
    /** Wakes all readers: the change concerns all of them, or the listener was disconnected and may have missed one. */
    wakeAll(): void {
      for (const key of [...watchers.keys()]) wake(key)
    },
    /** Counts the readers that watch now. */
    count: () => [...watchers.values()].reduce((sum, { size }) => sum + size, 0),
  }
}
