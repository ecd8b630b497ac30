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

/** A migration that was applied: when it was generated (ms), and the SHA-256 of its file. */
export type AppliedRecord = { when: number; hash: string }

/** Returns the migrations that were applied, in their order; none for a database without the table of them. */
export async function readApplied(sql: Sql): Promise<AppliedRecord[]> {
  return await sql<AppliedRecord[]>`
    select created_at::float8 as "when", hash from drizzle.__drizzle_migrations order by created_at`.catch(
    (error: unknown) => {
      if (isUndefinedTable(error)) return []
      throw error
    },
  )
}

/**
 * Returns the names of the migrations that this version has and the database has not, in their order.
 * @throws database errors
 */
export async function readPendingMigrations(sql: Sql, folder?: string): Promise<string[]> {
  const [journal, applied] = await Promise.all([readJournal(folder), readApplied(sql)])
  const done = new Set(applied.map(({ when }) => when))
  return journal.filter(({ when }) => !done.has(when)).map(({ tag }) => tag)
}

/**
 * Returns whether the database has every migration this version knows. A database that the next version has migrated
 * further beside this process also counts as current.
 * @throws database errors
 */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  return (await readPendingMigrations(sql)).length === 0
}

/** Reports whether the migrations table or its schema does not exist. */
function isUndefinedTable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(42P01|3F000)$/.test(String(error.code))
}
