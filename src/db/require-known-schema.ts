import type { Sql } from '../platform/postgres/types.ts'
import { loadMigrations } from './load-migrations.ts'
import { MigrationError } from './migration-error.ts'
import { readApplied } from './pending-migrations.ts'

/**
 * Refuses a database that another version has migrated: one with a migration that this version does not know, or with
 * another text of one, by the SHA-256 that is recorded with each. Nothing is known of what its tables mean. A process that
 * runs already is not asked again: the next version may migrate beside it.
 * @throws MigrationError with one line that says what to do; database errors
 */
export async function requireKnownSchema(sql: Sql, folder?: string): Promise<void> {
  const [migrations, applied] = await Promise.all([loadMigrations(folder), readApplied(sql)])
  const known = new Map(migrations.map(({ when, name, hash }) => [when, { name, hash }]))
  const other = applied.find(({ when, hash }) => known.get(when)?.hash !== hash)
  if (!other) return
  const name = known.get(other.when)?.name
  const what = name
    ? `its migration ${name} has another text`
    : 'this version lacks a migration of it'
  throw new MigrationError(
    `The database is one of another version: ${what}. Start the version that migrated it, or begin with an empty database: set DATA_DIR or DATABASE_URL to another one`,
  )
}
