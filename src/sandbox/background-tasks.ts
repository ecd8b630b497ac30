/** The timers and unfinished tasks of one sandbox. Stopping leaves none of them running. */
export type BackgroundTasks = {
  /** Resolves `true` after `ms` milliseconds, or `false` immediately when the sandbox stops. */
  wait(ms: number): Promise<boolean>
  /** Starts a task without waiting for it. The task must not reject. */
  run(task: () => Promise<void>): void
  /** Cancels all waits and resolves when all started tasks have ended. */
  stop(): Promise<void>
}

/** Creates the timers and tasks of one sandbox. Sandboxes share none. */
export function createBackgroundTasks(): BackgroundTasks {
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
