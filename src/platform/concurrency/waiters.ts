export type Waiters<T> = ReturnType<typeof createWaiters<T>>

/** Lets readers wait for changes by key. A single database listener wakes them all. */
export function createWaiters<T>() {
  const watchers = new Map<string, Set<() => void>>()
  const reads = new Map<string, Promise<T>>()

  function wake(key: string): void {
    // A running read may have begun before the change, so later readers must not share it.
    reads.delete(key)
    for (const wakeWatcher of watchers.get(key) ?? []) wakeWatcher()
  }

  return {
    /** Starts watching a key. Call it before reading, so that no change is missed between reading and waiting. */
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
      /** Resolves `true` if the key was woken since `watch`, `false` after `ms` or when `signal` aborts. */
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
    /** Wakes all readers, if a change concerns them all or the listener was disconnected and may have missed one. */
    wakeAll(): void {
      for (const key of [...watchers.keys()]) wake(key)
    },
    count: () => [...watchers.values()].reduce((sum, { size }) => sum + size, 0),
  }
}
