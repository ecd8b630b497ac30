import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import { connect } from 'node:tls'

/** `verified` checks certificate and name; `preferred` goes on in the clear where a server has no TLS. */
export type TlsMode = 'off' | 'preferred' | 'required' | 'verified'

/** The request for TLS that comes before a session, and the byte that grants it (Postgres 17, 53.2.10). */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const GRANTED = 'S'.charCodeAt(0)

/** Reads `sslmode` as libpq has it, with `verify-ca` as `verify-full`; what it does not know is verified. */
export function readTlsMode(parameters: URLSearchParams): TlsMode {
  const given = parameters.get('sslmode') ?? parameters.get('ssl') ?? 'disable'
  if (parameters.get('sslrootcert') === 'system') return 'verified'
  if (given === 'disable' || given === 'false') return 'off'
  if (given === 'allow' || given === 'prefer') return 'preferred'
  return given === 'require' ? 'required' : 'verified'
}

/**
 * Agrees with a database server on TLS.
 * @param socket a connection that is being opened to the host `name`
 * @returns the connection to go on with; its certificate is checked before anything is written
 * @throws Error when the server is not reached, is silent, has no TLS and must, or says too much
 */
export async function secure(
  socket: Socket,
  name: string,
  mode: TlsMode,
  timeoutMs: number,
): Promise<Socket> {
  const isGranted = await requestTls(socket, timeoutMs)
  if (!isGranted && mode === 'preferred') return socket
  if (!isGranted) throw new Error('the database server has no TLS, and sslmode asks for it')
  // The name that must be on the certificate is `host`; an address is no server name (RFC 6066, 3).
  const servername = isIP(name) ? '' : name
  return connect({ socket, servername, host: name, rejectUnauthorized: mode === 'verified' })
}

/** More than the one byte may be somebody else's, put before what the server says (CVE-2021-23222). */
async function requestTls(socket: Socket, timeoutMs: number): Promise<boolean> {
  const over = new AbortController()
  const { signal } = over
  const timer = setTimeout(() => over.abort(lose('CONNECT_TIMEOUT', socket)), timeoutMs)
  const hangUp = () => over.abort(lose('CONNECTION_CLOSED', socket))
  socket.once('close', hangUp)
  try {
    await once(socket, 'connect', { signal })
    socket.write(TLS_REQUEST)
    const [answer]: Buffer[] = await once(socket, 'data', { signal })
    if (answer?.length !== 1)
      throw new Error('the database server answered in the clear before TLS')
    return answer[0] === GRANTED
  } catch (error) {
    throw error instanceof Error && error.name === 'AbortError' ? signal.reason : error
  } finally {
    clearTimeout(timer)
    socket.off('close', hangUp)
  }
}

/** Codes and words are the driver's. */
function lose(code: string, { host, port }: Socket & { host?: string; port?: number }): Error {
  return Object.assign(new Error(`${code} ${host}:${port}`), { code })
}
