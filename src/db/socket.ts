import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { connect as startTls } from 'node:tls'

/** The driver's options: what it has read from a server's address, hosts or a socket file, and the types of arrays. */
type DriverOptions = {
  host: readonly string[]
  port: readonly number[]
  path?: string | false | undefined
  fetch_types: boolean
  shared: { typeArrayMap: object }
}

/** `verified` checks certificate and name; `preferred` goes on in the clear where a server has no TLS. */
type TlsMode = 'off' | 'preferred' | 'required' | 'verified'

/** The request for TLS that comes before a session, and the byte that grants it (Postgres 17, 53.2.10). */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const GRANTED = 'S'.charCodeAt(0)

/**
 * Makes the sockets of a pool. Each tells its error and its close in one breath: Node tells the close a
 * turn later, and in between the driver (3.4.9) hands statements to the connection that is gone, keeps
 * them, and takes the greeting of its next session for their answer. What no server ever saw, a `commit`
 * among them, would be said to be done.
 * @param url the server's address; `sslmode` as libpq has it, with `verify-ca` as `verify-full`
 * @param timeoutMs for agreeing on TLS
 */
export function createSockets(url: string, timeoutMs: number) {
  const mode = readTlsMode(new URL(url).searchParams)
  const lost = new Set<() => void>()
  let turn = 0
  /** Never rejects: the driver would lose the place in its pool. */
  return async (options: DriverOptions): Promise<Socket> => {
    // The pool knows them once one connection has asked. Asked again at each connection, and cut off there,
    // the driver would reject what nobody can catch, which ends the process (porsager/postgres 1223).
    if (Object.keys(options.shared.typeArrayMap).length > 0) options.fetch_types = false
    const { host, port, path } = options
    const at = turn++ % Math.max(1, host.length)
    const name = host[at] ?? 'localhost'
    const socket = path ? connect(path) : connect(port[at] ?? 5432, name)
    if (mode === 'off' || path) return tellEndAtOnce(socket, lost)
    try {
      const isGranted = await requestTls(socket, timeoutMs)
      if (!isGranted && mode === 'preferred') return tellEndAtOnce(socket, lost)
      if (!isGranted) throw new Error('the database server has no TLS, and sslmode asks for it')
      const rejectUnauthorized = mode === 'verified'
      return tellEndAtOnce(startTls({ socket, servername: name, rejectUnauthorized }), lost)
    } catch (error) {
      socket.destroy()
      return breakSoon(error, lost)
    }
  }
}

function readTlsMode(parameters: URLSearchParams): TlsMode {
  const given = parameters.get('sslmode') ?? parameters.get('ssl') ?? 'disable'
  if (parameters.get('sslrootcert') === 'system') return 'verified'
  if (given === 'disable' || given === 'false') return 'off'
  if (given === 'allow' || given === 'prefer') return 'preferred'
  return given === 'require' ? 'required' : 'verified'
}

/** @throws when the server is not reached, is silent, or says more than the one byte (CVE-2021-23222) */
async function requestTls(socket: Socket, timeoutMs: number): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs)
  await once(socket, 'connect', { signal })
  socket.write(TLS_REQUEST)
  const [answer]: Buffer[] = await once(socket, 'data', { signal })
  if (answer?.length !== 1) throw new Error('the database server answered in the clear before TLS')
  return answer[0] === GRANTED
}

function breakSoon(error: unknown, lost: Set<() => void>): Socket {
  const socket = tellEndAtOnce(new Socket(), lost)
  setImmediate(() => socket.destroy(error instanceof Error ? error : new Error(String(error))))
  return socket
}

/**
 * Error and close are told together once the close is there, for all sockets lost until then: by
 * that time the driver has written out what it had gathered, which else would stay for the next session
 * and keep it from beginning; and nothing is handed from one lost connection to the next.
 */
function tellEndAtOnce<S extends Socket>(socket: S, lost: Set<() => void>): S {
  const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
  let failure: unknown
  let isOver = false
  function end(): void {
    if (isOver) return
    isOver = true
    lost.delete(end)
    if (failure !== undefined) emit('error', failure)
    emit('close', failure !== undefined)
  }
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    if (!isOver && (event === 'error' || event === 'end')) lost.add(end)
    if (event === 'error') failure ??= given[0]
    else if (event === 'close') {
      for (const endOne of lost) endOne()
      end()
    } else return emit(event, ...given)
    return true
  }
  return socket
}
