import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { parseDatabaseUrl } from './hosts.ts'
import { guardSession, type Session } from './session.ts'
import { createConnectionError, negotiateTls, readTlsMode, type TlsMode } from './tls.ts'

/** What the driver has read from a server's URL: hosts to try in turn, or a socket file. */
export type DriverOptions = {
  host: readonly string[]
  port: readonly number[]
  path?: string | false | undefined
}

/** What the sessions of a pool have in common. */
export type PoolSessions = {
  /** The usable ones, also of another pool that ends with this one. */
  sessions: Set<Session>
  /** For how long a server may owe an answer and send nothing (ms); without a limit if left out. */
  silenceMs?: number
  /** They write nothing. */
  readOnly?: boolean
}

/**
 * Builds the driver's options for one database: our own sockets, which also choose among its servers and negotiate
 * TLS in the driver's place, and a startup message padded above 1 KiB, the size from which the driver writes at once.
 * A short statement given to the driver (3.4.9) just before a connection ends stays in its buffer. A short startup
 * message would wait behind it without end, and the pool would lose a connection. A server that receives both
 * closes the connection, and the pool recovers.
 * @param timeoutMs for connecting to a server, and for negotiating TLS
 */
export function buildSocketOptions(
  url: string,
  timeoutMs: number,
  sessions: PoolSessions = { sessions: new Set() },
) {
  const { hosts = [] } = parseDatabaseUrl(url) ?? {}
  const [first] = hosts
  // A variable, because the driver's types omit `socket`.
  const options = {
    // The driver sees one server: with several it repeats failed attempts at once, and reports none.
    ...(first ? { host: first.host } : {}),
    socket: createSockets(url, timeoutMs, sessions),
    ssl: false,
    connection: { options: ' '.repeat(1024) },
  }
  return options
}

/**
 * Creates the sockets of a pool. Each attempt begins with the server that last opened a session, or else the one after
 * a server that failed.
 * @param url the database's URL; `sslmode` as in libpq, with `verify-ca` as `verify-full`
 */
function createSockets(
  url: string,
  timeoutMs: number,
  { sessions, silenceMs, readOnly }: PoolSessions,
) {
  const { hosts = [], parameters = new URLSearchParams() } = parseDatabaseUrl(url) ?? {}
  const mode = readTlsMode(parameters)
  let preferred = 0
  /** Read-only servers since a session was open. */
  let refusals = 0
  const moveOn = (from: number, count: number) => {
    if (preferred === from) preferred = (from + 1) % count
  }
  /** Never rejects: the driver would lose the connection's place in its pool. */
  return async ({ host: [host = 'localhost'], port: [port = 5432], path }: DriverOptions) => {
    // The driver's port is that of the first server: from the URL, from PGPORT, or 5432.
    const fallback = hosts[0]?.port === undefined && port > 0 ? port : 5432
    const servers =
      hosts.length > 0 && !path
        ? hosts.map((one) => ({ host: one.host, port: one.port ?? fallback }))
        : [{ host, port }]
    const { length: count } = servers
    const first = preferred
    let failure: unknown
    for (let turn = 0; turn < count; turn += 1) {
      const index = (first + turn) % count
      try {
        const server = servers[index] ?? { host, port }
        const open = (isAlone: boolean) => openSocket(server, path, { mode, timeoutMs, isAlone })
        const socket = await open(count === 1)
        return guardSession(socket, sessions, {
          onOpen() {
            preferred = index
            refusals = 0
          },
          onRefused: () => moveOn(index, count),
          // Once around is enough: then the driver gets the error, and its next attempt waits a little.
          isElsewhere() {
            refusals += 1
            return refusals % count !== 0
          },
          silenceMs,
          readOnly,
          cancel: (request) => void sendAlone(open(false), request, timeoutMs),
        })
      } catch (error) {
        failure ??= error
        moveOn(index, count)
      }
    }
    return createFailedSocket(failure)
  }
}

type Opening = { mode: TlsMode; timeoutMs: number; isAlone: boolean }

/**
 * Opens a socket to a server. Without TLS and without another server to try, it is still being opened when it is
 * returned.
 * @throws Error when the server cannot be reached, or refuses TLS
 */
async function openSocket(
  address: { host: string; port: number },
  path: DriverOptions['path'],
  { mode, timeoutMs, isAlone }: Opening,
): Promise<Socket> {
  // The driver's own errors report the `host` and `port` of the socket.
  const socket = Object.assign(connect(path ? { path } : address), path ? {} : address)
  try {
    if (mode !== 'off' && !path) {
      return Object.assign(await negotiateTls(socket, address.host, mode, timeoutMs), address)
    }
    if (!isAlone) await waitUntilConnected(socket, timeoutMs)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

async function waitUntilConnected(socket: Socket, timeoutMs: number): Promise<void> {
  const timer = setTimeout(
    () => socket.destroy(createConnectionError('CONNECT_TIMEOUT', socket)),
    timeoutMs,
  )
  await once(socket, 'connect').finally(() => clearTimeout(timer))
}

/** Sends one message over a connection of its own. The server answers nothing, and may be gone. */
async function sendAlone(
  opening: Promise<Socket>,
  message: Buffer,
  timeoutMs: number,
): Promise<void> {
  const socket = await opening.catch(() => undefined)
  socket?.on('error', () => {}).setTimeout(timeoutMs, () => socket.destroy())
  socket?.end(message)
}

const UNUSED = { onOpen() {}, onRefused() {}, isElsewhere: () => false, cancel() {} }

/** What the driver writes to the socket fails as well; the first error is the one it gets. */
function createFailedSocket(error: unknown): Socket {
  const socket = guardSession(new Socket(), new Set(), UNUSED)
  socket.emit('error', error instanceof Error ? error : new Error(String(error)))
  setImmediate(() => socket.destroy())
  return socket
}
