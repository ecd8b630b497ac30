import { once } from 'node:events'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect, TLSSocket } from 'node:tls'
import { type Config, readConfig } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { Environment } from '../config/settings.ts'
import { COMMIT, PACKAGE } from '../version.ts'
import { type CheckName, checkDatabase, type Finding } from './check-database.ts'
import { isCertificateCode } from './explain-error.ts'

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

export type CheckResult = {
  /** No check failed. */
  ok: boolean
  version: string
  commit: string | undefined
  checks: readonly Finding[]
}

/** What depends on valid settings. They run beside each other, so that one that waits holds up no other. */
const CHECKS = [checkDatabase, checkGateway] as const

/** For everything of the database, and for each host (ms): with closing its connections less than 10 s. */
const TIMEOUT_MS = 7_500

const OTHERS: readonly CheckName[] = ['database', 'schema', 'restore', 'key', 'clock', 'gateway']

/**
 * Checks whether a start with these settings would succeed. Nothing is served, bound or written: the database is read in
 * a read-only transaction, and the gateway gets no request.
 * @param env the environment variables; this process's own if left out
 * @param onFinding called with each finding as it comes
 */
export async function runCheck(
  env?: Environment,
  {
    timeoutMs = TIMEOUT_MS,
    onFinding = () => {},
  }: { timeoutMs?: number; onFinding?: (finding: Finding) => void } = {},
): Promise<CheckResult> {
  const report = (found: Finding[]) => {
    for (const finding of found) onFinding(finding)
    return found
  }
  const { config, findings } = checkSettings(env)
  report(findings)
  const others = config
    ? await Promise.all(CHECKS.map(async (check) => report(await check(config, timeoutMs))))
    : [report(skipOthers())]
  const checks = [...findings, ...others.flat()]
  const ok = checks.every(({ status }) => status !== 'failed')
  return { ok, version: PACKAGE.version, commit: COMMIT, checks }
}

function skipOthers(): Finding[] {
  const detail = 'not checked, because the settings are invalid'
  return OTHERS.map((name) => ({ name, status: 'skipped', detail }))
}

const STATUS: Readonly<Record<Finding['status'], string>> = {
  ok: 'ok',
  failed: 'FAIL',
  skipped: 'skip',
}

/** Formats a finding as one line. */
export function presentFinding({ name, status, detail }: Finding): string {
  return `${STATUS[status].padEnd(5)} ${name.padEnd(9)} ${clean(detail)}\n`
}

/** Replaces control characters, which could break the line or control the terminal. */
function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, ' ')
}

/** Reads the settings, and the files that they name. Every invalid setting gives a finding of its own. */
function checkSettings(env: Environment | undefined): {
  config?: Config
  findings: Finding[]
} {
  try {
    const config = readConfig(env)
    return { config, findings: [{ name: 'settings', status: 'ok', detail: describe(config) }] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { lines } = error
    return { findings: lines.map((detail) => ({ name: 'settings', status: 'failed', detail })) }
  }
}

function describe({ demo, ROLE, accounts }: Config): string {
  const codes = accounts.map(({ merchantCode }) => merchantCode).join(', ')
  return `${demo ? 'demo mode' : 'production'}, role ${ROLE}, ${accounts.length === 1 ? 'account' : 'accounts'} ${codes}`
}

type Endpoint = { name: CheckName; setting: string; url: URL }

/**
 * Connects to the gateway, and to the token endpoints that are elsewhere, and completes the TLS handshake. No request is
 * sent.
 */
async function checkGateway(config: Config, timeoutMs: number): Promise<Finding[]> {
  const { GATEWAY_BASE_URL: base, GATEWAY_TIMEOUT_MS } = config
  if (base === undefined) {
    const detail =
      'GATEWAY_BASE_URL is not set: the demo starts the sandbox gateway beside the service'
    return [{ name: 'gateway', status: 'skipped', detail }]
  }
  const endpoints = listEndpoints(config, new URL(base))
  return await Promise.all(
    endpoints.map((one) => checkHost(one, Math.min(GATEWAY_TIMEOUT_MS, timeoutMs))),
  )
}

function listEndpoints({ accounts, sharedToken }: Config, base: URL): Endpoint[] {
  const sources = [...accounts.map(({ token }) => token), sharedToken]
  const origins = sources.flatMap((source) =>
    source?.kind === 'client' ? [new URL(source.url, base).origin] : [],
  )
  const others = [...new Set(origins)].filter((origin) => origin !== base.origin)
  return [
    { name: 'gateway', setting: 'GATEWAY_BASE_URL', url: base },
    ...others.map((origin) => {
      return { name: 'tokens' as const, setting: 'the token URL', url: new URL(origin) }
    }),
  ]
}

async function checkHost({ name, setting, url }: Endpoint, timeoutMs: number): Promise<Finding> {
  const result = await probeTls(url, timeoutMs)
  if (result.kind === 'plain') {
    return { name, status: 'ok', detail: `plain http to ${url.host}: nothing to verify` }
  }
  if (result.kind === 'verified') {
    const until = result.validUntil.toISOString().slice(0, 10)
    const detail = `${result.protocol} with ${url.host}, certificate valid until ${until}`
    return { name, status: 'ok', detail }
  }
  return {
    name,
    status: 'failed',
    detail: `${url.host} ${explain(result.code, setting, timeoutMs)}`,
  }
}

function explain(code: string, setting: string, timeoutMs: number): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `has a certificate for another name: check ${setting}`
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return `has a certificate that is not valid now (${code}): check the clock of this machine, or ask the gateway's operator`
  }
  if (isCertificateCode(code)) {
    return `has a certificate that is not trusted (${code}): for an authority of your own, set NODE_EXTRA_CA_CERTS to its file`
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `cannot be resolved (${code}): check ${setting} and the name servers of this machine`
  }
  if (code === 'ETIMEDOUT') {
    return `did not complete a connection within ${timeoutMs} ms: check ${setting}, and firewalls on the way`
  }
  return `cannot be reached (${code}): check ${setting}, and firewalls on the way`
}
