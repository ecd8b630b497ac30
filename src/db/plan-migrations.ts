import type { Sql } from '../platform/postgres/types.ts'
import { loadMigrations } from './load-migrations.ts'
import { readPendingMigrations } from './pending-migrations.ts'
import { requireKnownSchema } from './require-known-schema.ts'

/** A migration that is pending, as `cli migrate --plan` shows it. */
export type PlannedMigration = {
  name: string
  /** Its statements run one by one, outside a transaction, and block no writes. */
  concurrent: boolean
  statements: string[]
}

/**
 * Returns what `migrateDatabase` would apply now, in this order. Changes nothing.
 * @throws MigrationError for a migration that cannot be run, and for a database of another version; database errors
 */
export async function planMigrations(sql: Sql, folder?: string): Promise<PlannedMigration[]> {
  await requireKnownSchema(sql, folder)
  const migrations = await loadMigrations(folder)
  const pending = await readPendingMigrations(sql, folder)
  return migrations
    .filter(({ name }) => pending.includes(name))
    .map(({ name, concurrent, statements }) => ({
      name,
      concurrent,
      statements: statements.map((one) => (typeof one === 'string' ? one.trim() : one.text)),
    }))
}
