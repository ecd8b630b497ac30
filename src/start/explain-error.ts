import { ConfigError } from '../config/sources.ts'
import { MigrationError } from '../db/migration-error.ts'
import { EmbeddedPostgresError } from '../platform/postgres/embedded/error.ts'
import { READ_ONLY } from '../platform/postgres/errors.ts'
import { isCertificateCode } from './is-certificate-code.ts'
import { PortError } from './require-free-ports.ts'

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
  if (code === 'EADDRINUSE' && error instanceof Error) {
    return `${error.message}: stop the program that uses this port, or set PORT (METRICS_PORT for the metrics, SANDBOX_PORT for the sandbox)`
  }
  if (code === '28P01' || code === '28000' || code === '3D000') {
    return `The database at DATABASE_URL refused the connection (${code}): check the user, password and database name`
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
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** These errors are written for operators. */
function isExplained(error: unknown): error is Error {
  return [EmbeddedPostgresError, MigrationError, PortError].some((kind) => error instanceof kind)
}
