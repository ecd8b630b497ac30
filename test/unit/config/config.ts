import { readConfig } from '../../../src/config/config.ts'
import { ConfigError } from '../../../src/config/environment.ts'

/** The least that a start outside demo mode needs. */
export const PRODUCTION = {
  GATEWAY_BASE_URL: 'https://gateway.example',
  GATEWAY_MERCHANT_CODE: 'SHOP1',
  GATEWAY_SECRET: 'signing-secret',
  DATA_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
  GATEWAY_REFUND_DEDUPES: 'true',
}

/** Returns the lines with which the start fails; none when it succeeds. */
export function readProblems(env: Record<string, string | undefined>): readonly string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.lines
    throw error
  }
}
