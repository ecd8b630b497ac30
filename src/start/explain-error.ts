import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { MigrationError } from '../db/migration-state.ts'
import { EmbeddedPostgresError } from '../platform/postgres/embedded-binaries.ts'
import { READ_ONLY } from '../platform/postgres/errors.ts'

/** A setting names an address that cannot be listened on. */
class PortError extends Error {}

/** Codes of the system and of the driver. Only the database is connected to during the start. */
const UNREACHABLE =
  /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|CONNECT_TIMEOUT|CONNECTION_CLOSED)$/

/** Describes why the start failed, in lines an operator can act on; an unexpected error in full. */
export function explainError(error: unknown): string {
  if (error instanceof ConfigError) {
    return `The settings are invalid:\n${error.lines.map((line) => `  ${line}`).join('\n')}`
  }
  if (isExplained(error)) return error.message
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === '28P01' || code === '28000' || code === '3D000') {
    return `The database at DATABASE_URL refused the connection (${code}): check the user, password and database name`
  }
  if (code === '53300') {
    return `The database at DATABASE_URL has no connection left (${code}): end other programs, lower DATABASE_POOL, or raise max_connections of the server`
  }
  if (code === '42501' && error instanceof Error) {
    return `The user of DATABASE_URL may not do what the start needs (${code}, ${error.message}): grant it that right, or let the owner of the schema migrate`
  }
  if (code === READ_ONLY) {
    return `No server of DATABASE_URL accepts writes (${code}): promote a standby, or add the primary to the list of hosts`
  }
  if (typeof code === 'string' && UNREACHABLE.test(code)) {
    return `The database at DATABASE_URL is unreachable (${code}): check its address and whether it is running`
  }
  if (typeof code === 'string' && isCertificateCode(code)) {
    return `The certificate of the database at DATABASE_URL is not accepted (${code}): check the name in the URL, and add an authority of your own with NODE_EXTRA_CA_CERTS`
  }
  if (error instanceof Error && 'path' in error && typeof code === 'string') {
    return `DATA_DIR cannot be used (${error.message}): fix that, or set another DATA_DIR`
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** These errors are written for operators. */
function isExplained(error: unknown): error is Error {
  return [EmbeddedPostgresError, MigrationError, PortError].some((kind) => error instanceof kind)
}

/** Returns whether an error code of Node or OpenSSL means that a certificate is not accepted. */
export function isCertificateCode(code: string): boolean {
  return /CERT|ISSUER|SIGNATURE/.test(code)
}

/** An error of Node's `listen`, or of resolving the name that it was given. */
const ListenError = z.object({
  syscall: z.enum(['listen', 'getaddrinfo']),
  code: z.string(),
  address: z.string().optional(),
  hostname: z.string().optional(),
  port: z.number().optional(),
})

/** Returns an error that names the setting whose address could not be listened on; any other error as it is. */
export function explainPort(error: unknown, config: Config): unknown {
  const { data: failed } = ListenError.safeParse(error)
  if (!failed) return error
  const host = failed.address ?? failed.hostname
  const ports = listPorts(config)
  const found =
    ports.find((one) => one.host === host && one.port === (failed.port ?? one.port)) ??
    // The error has the address of a name.
    ports.find((one) => one.port === failed.port)
  return found ? new PortError(explainListening(found, failed.code), { cause: error }) : error
}

/** A port that the service listens on, with the settings it comes from. */
type Port = { setting: string; hostSetting: string; host: string; port: number }

/** In the order in which they are listened on. */
function listPorts(config: Config): Port[] {
  const { HOST, PORT, METRICS_HOST, METRICS_PORT, SANDBOX_HOST, SANDBOX_PORT } = config
  const hostSetting = METRICS_HOST === undefined ? 'HOST' : 'METRICS_HOST'
  const hasSandbox = config.demo && config.GATEWAY_BASE_URL === undefined
  const named = [
    {
      setting: 'SANDBOX_PORT',
      hostSetting: 'SANDBOX_HOST',
      host: SANDBOX_HOST,
      port: hasSandbox ? SANDBOX_PORT : undefined,
    },
    { setting: 'METRICS_PORT', hostSetting, host: METRICS_HOST ?? HOST, port: METRICS_PORT },
    { setting: 'PORT', hostSetting: 'HOST', host: HOST, port: PORT },
  ]
  return named.flatMap(({ port, ...one }) => (port === undefined ? [] : [{ ...one, port }]))
}

function explainListening({ setting, hostSetting, host, port }: Port, code: string): string {
  if (code === 'EADDRINUSE') {
    const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
    return `${setting}: another program listens on ${address}; stop it, or set ${setting} to another port`
  }
  if (code === 'EACCES') {
    return `${setting}: this user may not listen on port ${port}; set ${setting} to a port above 1023`
  }
  return `${hostSetting}: cannot listen on ${host} (${code}); set ${hostSetting} to an address of this machine, for example ${hostSetting}=127.0.0.1`
}
