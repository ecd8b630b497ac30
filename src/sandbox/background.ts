/** Waits and unfinished work of one sandbox, so that stopping it leaves nothing behind. */
export type Background = {
  /** Resolves `true` after `ms` milliseconds, or `false` at once when the sandbox stops. */
  wait(ms: number): Promise<boolean>
  /** Starts work nobody waits for. The task must not reject. */
  run(task: () => Promise<void>): void
  /** Cancels every wait and resolves when all started work has ended. */
  stop(): Promise<void>
}

/** Makes the waits and background work of one sandbox; nothing is shared with another. */
export function makeBackground(): Background {
  const waiting = new Set<() => void>()
  const running = new Set<Promise<void>>()
  let stopped = false

  return {
    wait(ms) {
      if (stopped || ms <= 0) return Promise.resolve(!stopped)
      return new Promise((resolve) => {
        const end = (elapsed: boolean) => {
          clearTimeout(timer)
          waiting.delete(cancel)
          resolve(elapsed)
        }
        const cancel = () => end(false)
        const timer = setTimeout(() => end(true), ms)
        waiting.add(cancel)
      })
    },
    run(task) {
      if (stopped) return
      const work = task().finally(() => running.delete(work))
      running.add(work)
    },
    async stop() {
      stopped = true
      for (const cancel of [...waiting]) cancel()
      await Promise.allSettled(running)
    },
  }
}
