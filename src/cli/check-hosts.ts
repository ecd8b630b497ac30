import { once } from 'node:events'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect, TLSSocket } from 'node:tls'
import type { Config } from '../config/config.ts'
import { CERTIFICATE_CODES } from './explain.ts'

/**
 * The result of a check. `detail` is one line without secrets: what was found, and after a failure what to do.
 * `skipped` means that there is nothing to check, or that an earlier check failed which this one depends on.
 */
export type Finding = {
  name: string
  status: 'ok' | 'failed' | 'skipped'
  detail: string
  /** When the host's certificate ends (ISO 8601). */
  expires?: string | undefined
}

export type Add = (found: Finding) => void

/** Connects to the gateway and to token endpoints elsewhere, with the TLS handshake. No request is sent. */
export async function checkHosts(config: Config, timeoutMs: number, add: Add): Promise<void> {
  const { GATEWAY_BASE_URL, GATEWAY_TIMEOUT_MS, accounts, sharedToken } = config
  if (GATEWAY_BASE_URL === undefined) {
    const detail =
      'GATEWAY_BASE_URL is not set: the demo starts the sandbox gateway beside the service'
    return add({ name: 'gateway', status: 'skipped', detail })
  }
  const base = new URL(GATEWAY_BASE_URL)
  const sources = [...accounts.map(({ token }) => token), sharedToken]
  const origins = sources.flatMap((source) =>
    source?.kind === 'client' ? [new URL(source.url, base).origin] : [],
  )
  const others = [...new Set(origins)].filter((origin) => origin !== base.origin)
  const check = async (name: string, setting: string, url: URL) => {
    const limitMs = Math.min(GATEWAY_TIMEOUT_MS, timeoutMs)
    try {
      add({ name, status: 'ok', ...(await connectTo(url, limitMs)) })
    } catch (error) {
      const detail = `${url.host} ${explainHost(readCode(error), setting, limitMs)}`
      add({ name, status: 'failed', detail })
    }
  }
  await Promise.all([
    check('gateway', 'GATEWAY_BASE_URL', base),
    ...others.map((origin) => check('tokens', 'the token URL', new URL(origin))),
  ])
}

/** Connects to the origin of a URL. For https the certificate is verified as every call does. */
async function connectTo(url: URL, limitMs: number): Promise<{ detail: string; expires?: string }> {
  const socket = openSocket(url)
  try {
    const event = socket instanceof TLSSocket ? 'secureConnect' : 'connect'
    await once(socket, event, { signal: AbortSignal.timeout(limitMs) })
    if (!(socket instanceof TLSSocket))
      return { detail: `plain http to ${url.host}: nothing to verify` }
    const expires = new Date(socket.getPeerCertificate().valid_to).toISOString()
    const until = `certificate valid until ${expires.slice(0, 10)}`
    return { detail: `${socket.getProtocol()} with ${url.host}, ${until}`, expires }
  } finally {
    socket.on('error', () => {}).destroy()
  }
}

function openSocket({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  if (protocol === 'http:') return connectPlain({ host, port: Number(port || 80) })
  // An IP address is not a server name (RFC 6066, section 3).
  const servername = isIP(host) ? '' : host
  const tls = { ALPNProtocols: ['http/1.1'], rejectUnauthorized: true }
  return connect({ host, port: Number(port || 443), servername, ...tls })
}

function readCode(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN'
  if (error.name === 'AbortError') return 'ETIMEDOUT'
  if ('code' in error && typeof error.code === 'string') return error.code
  // Several addresses were tried.
  return error instanceof AggregateError ? readCode(error.errors[0]) : error.message
}

function explainHost(code: string, setting: string, timeoutMs: number): string {
  const firewalls = `check ${setting}, and firewalls on the way`
  const explained: Readonly<Record<string, string>> = {
    ERR_TLS_CERT_ALTNAME_INVALID: `has a certificate for another name: check ${setting}`,
    'CERT_HAS_EXPIRED|CERT_NOT_YET_VALID': `has a certificate that is not valid now (${code}): check the clock of this machine, or ask the gateway's operator`,
    [CERTIFICATE_CODES.source]: `has a certificate that is not trusted (${code}): for an authority of your own, set NODE_EXTRA_CA_CERTS to its file`,
    'ENOTFOUND|EAI_AGAIN': `cannot be resolved (${code}): check ${setting} and the name servers of this machine`,
    ETIMEDOUT: `did not complete a connection within ${timeoutMs} ms: ${firewalls}`,
  }
  const found = Object.entries(explained).find(([codes]) => RegExp(codes).test(code))
  return found?.[1] ?? `cannot be reached (${code}): ${firewalls}`
}
