import type { Sql } from '../platform/postgres/types.ts'
import { readJournal, readNewestApplied } from './pending-migrations.ts'

/**
 * Returns the name of the newest migration that the database has.
 * @returns `newer than <the newest one this version knows>` after a newer version migrated it; undefined without any
 */
export async function readSchemaName(sql: Sql): Promise<string | undefined> {
  const [journal, applied] = await Promise.all([readJournal(), readNewestApplied(sql)])
  const last = journal.at(-1)
  if (applied === 0 || !last) return undefined
  if (applied > last.when) return `newer than ${last.tag}`
  return journal.findLast(({ when }) => when <= applied)?.tag
}
