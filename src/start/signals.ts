import { createHangUpHandler } from './hang-up.ts'

/** What the signals of an operator do in a process that has begun to start. */
export type SignalHandlers = {
  /** SIGTERM and SIGINT; also SIGHUP because the terminal was closed. */
  stop: () => void
  /** SIGHUP. */
  reload: () => void
}

/**
 * Handles SIGTERM, SIGINT and SIGHUP from now on: without a handler each of them ends the process as if it had crashed.
 * Until handlers are attached nothing runs that has to be stopped: a stop ends the process with 0, and a reload is kept.
 * @returns attaches the handlers
 */
export function catchSignals(): (handlers: SignalHandlers) => void {
  let isReloadDue = false
  let handlers: SignalHandlers = {
    stop: () => process.exit(0),
    reload() {
      isReloadDue = true
    },
  }
  const stop = () => handlers.stop()
  // `on`, not `once`: Ctrl-C under npm arrives twice, and the second signal must not abort the stop.
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on(
    'SIGHUP',
    createHangUpHandler(() => handlers.reload(), stop),
  )
  return (attached) => {
    handlers = attached
    if (isReloadDue) attached.reload()
  }
}
