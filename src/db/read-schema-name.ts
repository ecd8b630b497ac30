import type { Sql } from '../platform/postgres/types.ts'
import { readApplied, readJournal } from './pending-migrations.ts'

/**
 * Returns the name of the newest migration that the database has.
 * @returns `newer than <the newest one this version knows>` after the next version migrated it; undefined without any
 */
export async function readSchemaName(sql: Sql): Promise<string | undefined> {
  const [journal, applied] = await Promise.all([readJournal(), readApplied(sql)])
  const newest = applied.at(-1)
  if (!newest) return undefined
  const known = journal.find(({ when }) => when === newest.when)?.tag
  return known ?? `newer than ${journal.at(-1)?.tag}`
}
