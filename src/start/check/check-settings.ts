import { type Config, readConfig } from '../../config/config.ts'
import { ConfigError } from '../../config/config-error.ts'
import type { Environment } from '../../config/settings.ts'
import type { Finding } from './types.ts'

/** Reads the settings, and the files that they name. Every invalid setting gives a finding of its own. */
export function checkSettings(env: Environment | undefined): {
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
