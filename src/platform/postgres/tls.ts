import { once } from 'node:events'
import { isIP, connect as openConnection, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { readErrorCode } from '../error-code.ts'

export type Address = { host: string; port: number } | { path: string }

/** `verified` checks certificate and name; `preferred` falls back to plain text if the server has no TLS. */
type TlsMode = 'off' | 'preferred' | 'required' | 'verified'

/** The SSLRequest message, sent before a session, and the byte that accepts it (Postgres 17, 53.2.10). */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const ACCEPTED = 'S'.charCodeAt(0)

/** Reads `sslmode` as libpq does, except that `verify-ca` means `verify-full`. An unknown mode is `verified`. */
export function readTlsMode(parameters: URLSearchParams): TlsMode {
  const given = parameters.get('sslmode') ?? parameters.get('ssl') ?? 'disable'
  if (parameters.get('sslrootcert') === 'system') return 'verified'
  if (given === 'disable' || given === 'false') return 'off'
  if (given === 'allow' || given === 'prefer') return 'preferred'
  return given === 'require' ? 'required' : 'verified'
}

/**
 * Negotiates TLS on behalf of the driver, which would wrap the guarded socket in one of its own.
 * @returns the connection to use; its certificate is checked before anything is written
 * @throws Error
 */
export async function negotiateTls(
  socket: Socket,
  address: { host: string; port: number },
  mode: TlsMode,
  timeoutMs: number,
): Promise<Socket> {
  try {
    const isAccepted = await requestTls(socket, address, timeoutMs)
    if (!isAccepted && mode === 'preferred') return socket
    if (!isAccepted) throw new Error('the database server has no TLS, but sslmode requires it')
  } catch (error) {
    socket.destroy()
    throw error
  }
  const { host } = address
  // The certificate is checked against `host`. An address is not allowed as the server name (RFC 6066, 3).
  const servername = isIP(host) ? '' : host
  return connect({ socket, servername, host, rejectUnauthorized: mode === 'verified' })
}

/** Returns whether a server answers a new connection, even with a refusal. */
export async function isReachable(address: Address, timeoutMs: number): Promise<boolean> {
  const socket = openConnection(address)
  try {
    await requestTls(socket, address, timeoutMs)
    return true
  } catch (error) {
    return isAnswer(error)
  } finally {
    socket.destroy()
  }
}

const UNREACHABLE = /^(CONNECT_TIMEOUT|ETIMEDOUT|E(HOST|NET)(UNREACH|DOWN))$/

/** Returns whether a failed connection was refused by the server or its machine, and so answered. */
export function isAnswer(error: unknown): boolean {
  return !UNREACHABLE.test(readErrorCode(error) ?? '')
}

/** Refuses further bytes, which an attacker may have injected before the server's own (CVE-2021-23222). */
async function requestTls(socket: Socket, address: Address, timeoutMs: number): Promise<boolean> {
  const controller = new AbortController()
  const { signal } = controller
  const abort = (code: string) => controller.abort(createConnectionError(code, address))
  const timer = setTimeout(() => abort('CONNECT_TIMEOUT'), timeoutMs)
  const onClose = () => abort('CONNECTION_CLOSED')
  socket.once('close', onClose)
  try {
    await once(socket, 'connect', { signal })
    socket.write(SSL_REQUEST)
    const [response]: Buffer[] = await once(socket, 'data', { signal })
    if (response?.length !== 1)
      throw new Error('the database server sent more than one byte in plain text before TLS')
    return response[0] === ACCEPTED
  } catch (error) {
    throw error instanceof Error && error.name === 'AbortError' ? signal.reason : error
  } finally {
    clearTimeout(timer)
    socket.off('close', onClose)
  }
}

/** Creates a connection error with a code and a message like the driver's. */
export function createConnectionError(code: string, address: Address, cause?: unknown): Error {
  const place = 'path' in address ? address.path : `${address.host}:${address.port}`
  return Object.assign(new Error(`${code} ${place}`, { cause }), { code })
}
