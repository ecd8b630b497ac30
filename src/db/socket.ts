import { connect, Socket } from 'node:net'
import { readTlsMode, secure } from './tls.ts'

/** What the driver has read from a server's address: hosts are tried in turn, or a socket file. */
export type DriverOptions = {
  host: readonly string[]
  port: readonly number[]
  path?: string | false | undefined
}

/**
 * What the driver has to be told of a server: where its sockets come from, that it leaves TLS to them, and
 * blanks that bring its greeting over 1 KiB, from where on it writes at once. A short statement that it
 * (3.4.9) is given just before a connection's end stays in its buffer. A short greeting would wait there
 * as well, for ever, and the pool has a place less; a server that hears both hangs up, and all is clean.
 * @param timeoutMs for agreeing on TLS
 */
export function describeLine(url: string, timeoutMs: number) {
  // A variable, because the driver's types leave `socket` out.
  const line = {
    socket: createSockets(url, timeoutMs),
    ssl: false,
    connection: { options: ' '.repeat(1024) },
  }
  return line
}

/**
 * Makes the sockets of a pool. Each tells its error and its close in one breath: Node tells the close a
 * turn later, and in between the driver (3.4.9) hands statements to the connection that is gone, keeps
 * them, and takes the greeting of its next session for their answer. What no server ever saw, a `commit`
 * among them, would be said to be done.
 * @param url the server's address; `sslmode` as libpq has it, with `verify-ca` as `verify-full`
 * @param timeoutMs for agreeing on TLS
 */
function createSockets(url: string, timeoutMs: number) {
  const mode = readTlsMode(new URL(url).searchParams)
  let turn = 0
  /** Never rejects: the driver would lose the place in its pool. */
  return async ({ host, port, path }: DriverOptions): Promise<Socket> => {
    const at = turn++ % Math.max(1, host.length)
    const name = host[at] ?? 'localhost'
    const address = { host: name, port: port[at] ?? 5432 }
    // The driver's own errors name what it finds on the socket.
    const socket = Object.assign(connect(path ? { path } : address), path ? {} : address)
    if (mode === 'off' || path) return tellEndAtOnce(socket)
    try {
      return tellEndAtOnce(Object.assign(await secure(socket, name, mode, timeoutMs), address))
    } catch (error) {
      socket.destroy()
      return breakSoon(error)
    }
  }
}

/** What the driver writes to it fails as well: the first error is the one that is told. */
function breakSoon(error: unknown): Socket {
  const socket = tellEndAtOnce(new Socket())
  socket.emit('error', error instanceof Error ? error : new Error(String(error)))
  setImmediate(() => socket.destroy())
  return socket
}

/**
 * Error and close are told together once the close is there: by that time the driver has written out what
 * it had gathered for the connection.
 */
function tellEndAtOnce<S extends Socket>(socket: S): S {
  const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
  let failure: unknown
  let isOver = false
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    if (event === 'error') failure ??= given[0]
    else if (event !== 'close') return emit(event, ...given)
    else if (!isOver) {
      isOver = true
      if (failure !== undefined) emit('error', failure)
      emit('close', failure !== undefined)
    }
    return true
  }
  return socket
}
