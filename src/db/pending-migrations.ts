import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Sql } from '../platform/postgres/types.ts'

/** Where the migrations of this version are: beside `src` and `dist`. */
export const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../migrations', import.meta.url))

const JOURNAL = z.object({ entries: z.array(z.object({ when: z.number(), tag: z.string() })) })

/** A migration as the journal lists it: its name, and the time it was generated (ms), by which they are ordered. */
export type JournalEntry = { tag: string; when: number }

/** Reads the journal of the migrations, in their order. @throws Error if the file is missing or is none */
export async function readJournal(folder = MIGRATIONS_FOLDER): Promise<JournalEntry[]> {
  return JOURNAL.parse(JSON.parse(await readFile(`${folder}/meta/_journal.json`, 'utf8'))).entries
}

/** Returns the `when` of the newest migration that was applied (ms); 0 for a database without any. */
export async function readNewestApplied(sql: Sql): Promise<number> {
  const rows = await sql<{ applied: number }[]>`
    select coalesce(max(created_at), 0)::float8 as applied from drizzle.__drizzle_migrations`.catch(
    (error: unknown) => {
      if (isUndefinedTable(error)) return []
      throw error
    },
  )
  return rows[0]?.applied ?? 0
}

/**
 * Returns the names of the migrations that this version has and the database has not, in their order. A database that
 * a newer version has migrated further has none pending.
 * @throws database errors
 */
export async function readPendingMigrations(sql: Sql, folder?: string): Promise<string[]> {
  const [journal, newest] = await Promise.all([readJournal(folder), readNewestApplied(sql)])
  return journal.filter(({ when }) => when > newest).map(({ tag }) => tag)
}

/**
 * Returns whether the database has every migration this version knows. A database that a newer version has
 * migrated further also counts as current.
 * @throws database errors
 */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  return (await readPendingMigrations(sql)).length === 0
}

/** Reports whether the migrations table or its schema does not exist. */
function isUndefinedTable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(42P01|3F000)$/.test(String(error.code))
}
