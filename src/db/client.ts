import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import { openPool } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import * as schema from './schema.ts'

/** The query builder over the pool, typed by the schema. */
export type Drizzle = PostgresJsDatabase<typeof schema>

export type Database = {
  sql: Sql
  drizzle: Drizzle
  close(): Promise<void>
  /** Opens a second pool, for reads that may be slow: see `Pool.openReads`. */
  openReads(connections: number): Omit<Database, 'openReads'>
}

/**
 * Opens a connection pool to the service's database. It connects on the first query, and reconnects
 * automatically when a connection is lost.
 * @param connections the size of the pool
 */
export function openDatabase(url: string, connections: number): Database {
  const { openReads, ...pool } = openPool(url, connections)
  return { ...addBuilder(pool), openReads: (count) => addBuilder(openReads(count)) }
}

function addBuilder<P extends { sql: Sql }>(pool: P): P & { drizzle: Drizzle } {
  return { ...pool, drizzle: drizzle(pool.sql, { schema }) }
}

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
