import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { readErrorCode } from '../platform/error-code.ts'
import type { Driver } from '../platform/postgres/driver.ts'
import { openPool } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'

export type Drizzle = PostgresJsDatabase

export type Database = ReturnType<typeof openDatabase>

/** Opens a pool of so many connections, as `openPool` does, and adds the query builder. */
export function openDatabase(url: string, connections: number) {
  const { openReads, ...pool } = openPool(url, connections)
  return { ...addBuilder(pool), openReads: (count: number) => addBuilder(openReads(count)) }
}

function addBuilder(pool: Driver): Driver & { drizzle: Drizzle } {
  return { ...pool, drizzle: drizzle(pool.sql) }
}

/** Checks that the database, which has its own list, knows the time zone of the daily caps. @throws ConfigError */
export async function requireTimeZone(
  sql: Sql,
  { CAPS_TIME_ZONE: zone }: Pick<Config, 'CAPS_TIME_ZONE'>,
): Promise<void> {
  try {
    await sql`select now() at time zone ${zone}`
  } catch (error) {
    if (readErrorCode(error) !== '22023') throw error
    throw new ConfigError([
      `CAPS_TIME_ZONE must be a time zone that the database knows (got "${zone}"); for example CAPS_TIME_ZONE=Asia/Ho_Chi_Minh`,
    ])
  }
}
