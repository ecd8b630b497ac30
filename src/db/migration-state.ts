import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { z } from 'zod'
import type { Sql } from '../platform/postgres/types.ts'
import { CLI } from '../version.ts'

/** Why the schema is not current, and what to do about it; shown to operators without a stack. */
export class MigrationError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'MigrationError'
  }
}

/** The command that applies what is pending, for messages to operators. */
export const MIGRATE_COMMAND = `"${CLI} migrate"`

/** Describes how many migrations are pending, at least one. */
export function countPending(pending: readonly string[]): string {
  return pending.length === 1
    ? '1 migration is pending'
    : `${pending.length} migrations are pending`
}

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

/** A statement that builds or drops an index without blocking writes. It cannot run in a transaction. */
export type IndexStatement = { action: 'create' | 'drop'; index: string; text: string }

/** A migration as its file has it. */
export type Migration = {
  name: string
  /** When it was generated (ms); migrations are applied and recorded by it. */
  when: number
  hash: string
} & (
  | { concurrent: false; statements: readonly string[] }
  | { concurrent: true; statements: readonly IndexStatement[] }
)

/** Comments, and literals: one expression, because either may contain the mark of the other. */
const SILENT = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'/g
const CREATE_INDEX =
  /^create (?:unique )?index concurrently (?:if not exists )?"([^"]+)" on [^;]+;?$/i
const DROP_INDEX = /^drop index concurrently (?:if exists )?"([^"]+)" ?;?$/i

/**
 * Reads all migrations, in their order.
 * @throws MigrationError if a migration mixes statements that must run outside a transaction with others
 */
export async function loadMigrations(folder = MIGRATIONS_FOLDER): Promise<Migration[]> {
  const files = readMigrationFiles({ migrationsFolder: folder })
  const journal = await readJournal(folder)
  return journal.flatMap(({ tag: name, when }, index) => {
    const file = files[index]
    if (!file) return []
    return [{ name, when, hash: file.hash, ...sortStatements(name, file.sql) }]
  })
}

function sortStatements(name: string, texts: readonly string[]) {
  const statements = texts.filter((text) => bare(text) !== '')
  const indexes = statements.map(readIndexStatement).filter((one) => one !== undefined)
  if (indexes.length === statements.length && indexes.length > 0) {
    return { concurrent: true as const, statements: indexes }
  }
  if (!statements.some((text) => /\bconcurrently\b/i.test(bare(text)))) {
    return { concurrent: false as const, statements }
  }
  throw new MigrationError(
    `migration ${name} has CONCURRENTLY beside other statements: such a statement runs outside a transaction, so move each "create index concurrently" and "drop index concurrently" to a migration that has nothing else, one statement after each breakpoint, names in double quotes`,
  )
}

function readIndexStatement(text: string): IndexStatement | undefined {
  const statement = bare(text)
  const created = CREATE_INDEX.exec(statement)?.[1]
  if (created) return { action: 'create', index: created, text: text.trim() }
  const dropped = DROP_INDEX.exec(statement)?.[1]
  return dropped ? { action: 'drop', index: dropped, text: text.trim() } : undefined
}

/** Returns a statement on one line, without comments, and with empty literals. */
function bare(text: string): string {
  const kept = text.replace(SILENT, (found) => (found.startsWith("'") ? "''" : ''))
  return kept.replace(/\s+/g, ' ').trim()
}

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
