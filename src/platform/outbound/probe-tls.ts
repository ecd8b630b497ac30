import { once } from 'node:events'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect, TLSSocket } from 'node:tls'

/** `plain`: connected without TLS; `failed` has the code of the system, of TLS, or `ETIMEDOUT`. */
export type TlsProbe =
  | { kind: 'verified'; protocol: string; validUntil: Date }
  | { kind: 'plain' }
  | { kind: 'failed'; code: string }

/**
 * Connects to the origin of a URL, for https with a handshake that verifies the certificate as every call does, and
 * closes the connection. Sends no request. Never rejects.
 */
export async function probeTls(url: URL, timeoutMs: number): Promise<TlsProbe> {
  const socket = open(url)
  try {
    const event = socket instanceof TLSSocket ? 'secureConnect' : 'connect'
    await once(socket, event, { signal: AbortSignal.timeout(timeoutMs) })
    if (!(socket instanceof TLSSocket)) return { kind: 'plain' }
    const validUntil = new Date(socket.getPeerCertificate().valid_to)
    return { kind: 'verified', protocol: socket.getProtocol() ?? 'TLS', validUntil }
  } catch (error) {
    return { kind: 'failed', code: readCode(error) }
  } finally {
    socket.on('error', () => {}).destroy()
  }
}

function open({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  if (protocol === 'http:') return connectPlain({ host, port: Number(port || 80) })
  return connect({
    host,
    port: Number(port || 443),
    // An address is no server name (RFC 6066, 3).
    servername: isIP(host) ? '' : host,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
  })
}

function readCode(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN'
  if (error.name === 'AbortError') return 'ETIMEDOUT'
  if ('code' in error && typeof error.code === 'string') return error.code
  // Several addresses were tried.
  return error instanceof AggregateError ? readCode(error.errors[0]) : error.message
}
