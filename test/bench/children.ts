import type { ChildProcess } from 'node:child_process'

/** What has to be undone when the bench is killed: its processes, and its servers and folders. */
const children = new Set<ChildProcess>()
const cleanups = new Set<() => void>()

/** Kills the process with the bench. */
export function keepChild<T extends ChildProcess>(child: T): T {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Runs `cleanup`, which must be synchronous, when the bench is killed before the returned function is called. */
export function keepCleanup(cleanup: () => void): () => void {
  cleanups.add(cleanup)
  return () => cleanups.delete(cleanup)
}

/** From now on SIGINT and SIGTERM leave no process, server or folder of the bench behind. */
export function stopOnSignals(): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.on(signal, () => {
      // One that is stopped by SIGSTOP gets no other signal.
      for (const child of children) child.kill('SIGKILL')
      for (const cleanup of cleanups) cleanup()
      process.exit(code)
    })
  }
}
