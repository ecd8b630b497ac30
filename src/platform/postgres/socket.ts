import { connect, Socket } from 'node:net'
import { createFatalFilter } from './fatal-error.ts'
import { negotiateTls, readTlsMode } from './tls.ts'

/** What the driver has read from a server's URL: hosts to try in turn, or a socket file. */
export type DriverOptions = {
  host: readonly string[]
  port: readonly number[]
  path?: string | false | undefined
}

/**
 * Builds the driver's options for one server: our own sockets, which also negotiate TLS in its place, and
 * a startup message padded above 1 KiB, the size from which the driver writes at once. A short statement
 * given to the driver (3.4.9) just before a connection ends stays in its buffer. A short startup message
 * would wait behind it without end, and the pool would lose a connection. A server that receives both
 * closes the connection, and the pool recovers.
 * @param timeoutMs for negotiating TLS
 */
export function buildSocketOptions(url: string, timeoutMs: number) {
  // A variable, because the driver's types omit `socket`.
  const options = {
    socket: createSockets(url, timeoutMs),
    ssl: false,
    connection: { options: ' '.repeat(1024) },
  }
  return options
}

/**
 * Creates the sockets of a pool. Each emits its error together with its close. Node emits the close one
 * turn later, and in between the driver (3.4.9) sends statements to the closed connection, keeps them, and
 * takes the first messages of its next session for their results. A statement that no server received, a
 * `commit` among them, would be reported as done.
 * @param url the server's URL; `sslmode` as in libpq, with `verify-ca` as `verify-full`
 * @param timeoutMs for negotiating TLS
 */
function createSockets(url: string, timeoutMs: number) {
  const mode = readTlsMode(new URL(url).searchParams)
  let attempts = 0
  /** Never rejects: the driver would lose the connection's place in its pool. */
  return async ({ host, port, path }: DriverOptions): Promise<Socket> => {
    const index = attempts++ % Math.max(1, host.length)
    const name = host[index] ?? 'localhost'
    const address = { host: name, port: port[index] ?? 5432 }
    // The driver's own errors report the `host` and `port` of the socket.
    const socket = Object.assign(connect(path ? { path } : address), path ? {} : address)
    if (mode === 'off' || path) return emitErrorWithClose(socket)
    try {
      const secured = await negotiateTls(socket, name, mode, timeoutMs)
      return emitErrorWithClose(Object.assign(secured, address))
    } catch (error) {
      socket.destroy()
      return createFailedSocket(error)
    }
  }
}

/** What the driver writes to the socket fails as well; the first error is the one it gets. */
function createFailedSocket(error: unknown): Socket {
  const socket = emitErrorWithClose(new Socket())
  socket.emit('error', error instanceof Error ? error : new Error(String(error)))
  setImmediate(() => socket.destroy())
  return socket
}

/**
 * Holds the error of a socket back until its close: by then the driver has written everything it had
 * buffered for the connection. The error with which the server ends the session is emitted there as well.
 */
function emitErrorWithClose<S extends Socket>(socket: S): S {
  const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
  const filter = createFatalFilter()
  let failure: unknown
  let isClosed = false
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    const [first] = given
    if (event === 'error') failure ??= first
    else if (event === 'data' && Buffer.isBuffer(first)) {
      const { passed, fatal } = filter(first)
      failure ??= fatal
      if (passed.length > 0) emit('data', passed)
    } else if (event !== 'close') return emit(event, ...given)
    else if (!isClosed) {
      isClosed = true
      if (failure !== undefined) emit('error', failure)
      emit('close', failure !== undefined)
    }
    return true
  }
  return socket
}
