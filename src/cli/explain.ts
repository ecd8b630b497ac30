import { ConfigError } from '../config/environment.ts'
import { MigrationError } from '../db/migration-state.ts'
import { ListenError } from '../http/server.ts'
import { EmbeddedPostgresError } from '../platform/postgres/embedded-binaries.ts'

/** Errors whose messages are written for operators. */
const EXPLAINED = [EmbeddedPostgresError, MigrationError, ListenError]

/** Codes of Node and OpenSSL for a certificate that is not accepted. */
export const CERTIFICATE_CODES = /CERT|ISSUER|SIGNATURE/

/** What codes of the system, Postgres and the driver mean: a start connects to nothing but the database. */
const DATABASE_ERRORS: Readonly<Record<string, string>> = {
  '^(28P01|28000|3D000)$':
    'The database at DATABASE_URL refused the connection ({code}): check the user, password and database name',
  '^53300$':
    'The database at DATABASE_URL has no connection left ({code}): end other programs, lower DATABASE_POOL, or raise max_connections of the server',
  '^42501$':
    'The user of DATABASE_URL may not do what the start needs ({code}, {message}): grant it that right, or let the owner of the schema migrate',
  '^25006$':
    'No server of DATABASE_URL accepts writes ({code}): promote a standby, or add the primary to the list of hosts',
  '^(ECONN(REFUSED|RESET)|ENOENT|E(HOST|NET)UNREACH|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|CONNECT_TIMEOUT)$':
    'The database at DATABASE_URL is unreachable ({code}): check its address and whether it is running',
  '^CONNECTION_CLOSED$':
    'The database at DATABASE_URL is unreachable ({code}): the connection was accepted and closed; check whether it is running, and what a proxy or pooler at that address leads to',
  [CERTIFICATE_CODES.source]:
    'The certificate of the database at DATABASE_URL is not accepted ({code}): check the name in the URL, and add an authority of your own with NODE_EXTRA_CA_CERTS',
}

/** Says what is wrong with the database; undefined for an error that does not come from it. */
export function explainDatabase(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error)) return undefined
  const { code, message } = error
  const found = Object.entries(DATABASE_ERRORS).find(([codes]) => RegExp(codes).test(String(code)))
  return found?.[1].replace('{code}', () => String(code)).replace('{message}', () => message)
}

/** Describes why the start failed, in lines an operator can act on; an unexpected error in full. */
export function explainError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof ConfigError)
    return ['The settings are invalid:', ...error.lines].join('\n  ')
  if (EXPLAINED.some((kind) => error instanceof kind)) return error.message
  if ('path' in error && 'code' in error) {
    return `DATA_DIR cannot be used (${error.message}): fix that, or set another DATA_DIR`
  }
  return explainDatabase(error) ?? error.stack ?? error.message
}
