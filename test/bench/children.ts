import type { ChildProcess } from 'node:child_process'

/** What has to be undone when this process ends: its children, and its servers and folders. */
const children = new Set<ChildProcess>()
const cleanups = new Set<() => void>()

/** Lets a child not outlive this process. */
export function keepChild<T extends ChildProcess>(child: T): T {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Runs `cleanup`, which must be synchronous, if this process ends before the returned function is called. */
export function keepCleanup(cleanup: () => void): () => void {
  cleanups.add(cleanup)
  return () => cleanups.delete(cleanup)
}

/** However this process ends from now on, it leaves no process, server or folder of the bench behind. */
export function stopOnExit(): void {
  process.on('exit', () => {
    // One that is stopped by SIGSTOP gets no other signal.
    for (const child of children) child.kill('SIGKILL')
    for (const cleanup of cleanups) cleanup()
  })
  for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 })) {
    process.on(signal, () => process.exit(code))
  }
}
