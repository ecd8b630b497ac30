import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import { openPool } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import * as schema from './schema.ts'

/** The query builder over the pool, typed by the schema. */
export type Db = PostgresJsDatabase<typeof schema>

export type Database = { sql: Sql; db: Db; close(): Promise<void> }

/**
 * Opens a connection pool to the service's database. It connects on the first query, and reconnects
 * automatically when a connection is lost.
 * @param connections the size of the pool
 */
export function openDatabase(url: string, connections: number): Database {
  const { sql, close } = openPool(url, connections)
  return { sql, db: drizzle(sql, { schema }), close }
}
