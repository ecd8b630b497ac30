import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { connect as startTls } from 'node:tls'

/** What the driver has read from a server's address: hosts are tried in turn, or a socket file. */
export type Target = {
  host: readonly string[]
  port: readonly number[]
  path?: string | false | undefined
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
  let turn = 0
  /** Never rejects: the driver would lose the place in its pool. */
  return async ({ host, port, path }: Target): Promise<Socket> => {
    const at = turn++ % Math.max(1, host.length)
    const name = host[at] ?? 'localhost'
    const socket = path ? connect(path) : connect(port[at] ?? 5432, name)
    if (mode === 'off' || path) return tellEndAtOnce(socket)
    try {
      const isGranted = await requestTls(socket, timeoutMs)
      if (!isGranted && mode === 'preferred') return tellEndAtOnce(socket)
      if (!isGranted) throw new Error('the database server has no TLS, and sslmode asks for it')
      const rejectUnauthorized = mode === 'verified'
      return tellEndAtOnce(startTls({ socket, servername: name, rejectUnauthorized }))
    } catch (error) {
      socket.destroy()
      return breakSoon(error)
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

function breakSoon(error: unknown): Socket {
  const socket = tellEndAtOnce(new Socket())
  setImmediate(() => socket.destroy(error instanceof Error ? error : new Error(String(error))))
  return socket
}

/** By the next turn the driver has written out what it had gathered, which else would stay for the next session. */
function tellEndAtOnce<S extends Socket>(socket: S): S {
  const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
  let failure: unknown
  let isOver = false
  function end(): void {
    if (isOver) return
    isOver = true
    if (failure !== undefined) emit('error', failure)
    emit('close', failure !== undefined)
  }
  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {
    if (event !== 'error' && event !== 'close') return emit(event, ...given)
    if (event === 'close') end()
    else {
      failure ??= given[0]
      setImmediate(end)
    }
    return true
  }
  return socket
}
