import type { Socket } from 'node:net'
import { watchResponses } from './response-watch.ts'
import { createSessionFilter } from './session-filter.ts'

/** A session with a server that the driver uses. */
export type Session = {
  /** Ends it at once: what is in flight fails with this error. */
  end(error: Error): void
}

export type SessionOptions = {
  /** It becomes usable. */
  onOpen(): void
  /** It ends before that. */
  onRefused(): void
  /** The server is read-only. @returns whether the driver is to connect again at once, to another server */
  isElsewhere(): boolean
  /** For how long the server may owe an answer and send nothing (ms); without a limit if left out. */
  silenceMs?: number | undefined
  /** It is set up to write nothing. */
  readOnly?: boolean | undefined
  /** Sends the server this request to cancel what the session is doing. */
  cancel(request: Buffer): void
}

const NO_LIMIT = { onSent() {}, onReceived() {}, isOwed: () => false, stop() {} }

/**
 * Guards a socket for the driver. It emits its error together with its close. Node emits the close one turn later,
 * and in between the driver (3.4.9) sends statements to the closed connection, keeps them, and takes the first messages
 * of its next session for their results. A statement that no server received, a `commit` among them, would be reported
 * as done. By the close, the driver has written everything it had buffered for the connection. The error with which
 * the session ended is emitted there as well.
 * @param open the pool's usable sessions
 */
export function guardSession<S extends Socket>(
  socket: S,
  open: Set<Session>,
  { onOpen, onRefused, isElsewhere, silenceMs, readOnly, cancel }: SessionOptions,
): S {
  const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
  const filter = createSessionFilter((bytes) => socket.write(bytes), readOnly)
  let failure: unknown
  let isClosed = false
  const session: Session = {
    end(error) {
      failure ??= error
      const request = filter.cancelRequest()
      // A commit that waits for a standby would go on waiting, with its locks and a connection of the server.
      if (request && watch.isOwed() && !socket.destroyed) cancel(request)
      socket.destroy()
    },
  }

  const onSilent = () => {
    const error = new Error(`the database server has not answered for ${silenceMs} ms`)
    session.end(Object.assign(error, { code: 'ETIMEDOUT' }))
  }
  const watch = silenceMs === undefined ? NO_LIMIT : watchResponses(silenceMs, onSilent)
  const { write } = socket
  socket.write = (...given: unknown[]): boolean => {
    const [messages] = given
    if (filter.isOpen() && Buffer.isBuffer(messages)) watch.onSent(messages)
    return Reflect.apply(write, socket, given)
  }

  function receive(chunk: Buffer): void {
    const { passed, ready, end } = filter.read(chunk)
    watch.onReceived(ready)
    if (filter.isOpen() && !open.has(session)) {
      open.add(session)
      onOpen()
    }
    if (passed.length > 0) emit('data', passed)
    if (!end) return
    if (end.scope === 'pool') for (const one of open) one.end(end.createError())
    // The driver connects again if a session that it has not used yet closes without an error.
    else if (end.scope === 'server' && isElsewhere()) socket.destroy()
    else session.end(end.createError())
  }
  function close(): void {
    isClosed = true
    watch.stop()
    if (!open.delete(session)) onRefused()
    if (failure !== undefined) emit('error', failure)
    emit('close', failure !== undefined)
  }
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    const [first] = given
    if (event === 'error') failure ??= first
    else if (event === 'data' && Buffer.isBuffer(first)) receive(first)
    else if (event !== 'close') return emit(event, ...given)
    else if (!isClosed) close()
    return true
  }
  return socket
}
