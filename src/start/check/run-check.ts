import type { Config } from '../../config/config.ts'
import type { Environment } from '../../config/settings.ts'
import { COMMIT, PACKAGE } from '../../version.ts'
import { checkDatabase, DATABASE_TIMEOUT_MS } from './check-database.ts'
import { checkGateway } from './check-gateway.ts'
import { checkSettings } from './check-settings.ts'
import type { CheckName, CheckResult, Finding } from './types.ts'

const OTHERS: readonly CheckName[] = ['database', 'schema', 'key', 'clock', 'gateway']

/**
 * Checks whether a start with these settings would succeed. Nothing is served, bound or written: the database is read in
 * a read-only transaction, and the gateway gets no request.
 * @param env the environment variables; this process's own if left out
 * @param databaseTimeoutMs how long the checks of the database may take together
 */
export async function runCheck(
  env?: Environment,
  databaseTimeoutMs: number = DATABASE_TIMEOUT_MS,
): Promise<CheckResult> {
  const { config, findings } = checkSettings(env)
  const checks = [
    ...findings,
    ...(config ? await checkOthers(config, databaseTimeoutMs) : skipOthers()),
  ]
  const ok = checks.every(({ status }) => status !== 'failed')
  return { ok, version: PACKAGE.version, commit: COMMIT, checks }
}

async function checkOthers(config: Config, databaseTimeoutMs: number): Promise<Finding[]> {
  const [database, gateway] = await Promise.all([
    checkDatabase(config, databaseTimeoutMs),
    checkGateway(config),
  ])
  return [...database, ...gateway]
}

function skipOthers(): Finding[] {
  const detail = 'not checked, because the settings are invalid'
  return OTHERS.map((name) => ({ name, status: 'skipped', detail }))
}
