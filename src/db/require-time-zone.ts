import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { Sql } from '../platform/postgres/types.ts'

/**
 * Checks that the database knows the time zone whose days the caps of keys follow: it has a list of its own.
 * @throws ConfigError
 */
export async function requireTimeZone(
  sql: Sql,
  { CAPS_TIME_ZONE: zone }: Pick<Config, 'CAPS_TIME_ZONE'>,
): Promise<void> {
  try {
    await sql`select now() at time zone ${zone}`
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === '22023')) throw error
    throw new ConfigError([
      `CAPS_TIME_ZONE must be a time zone that the database knows (got "${zone}"); for example CAPS_TIME_ZONE=Asia/Ho_Chi_Minh`,
    ])
  }
}
