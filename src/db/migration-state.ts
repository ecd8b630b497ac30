import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Sql } from '../platform/postgres/types.ts'
import { CLI } from '../version.ts'

/** Why the schema is not current, and what to do about it; shown to operators without a stack. */
export class MigrationError extends Error {
  override name = 'MigrationError'
}

/** The command that applies what is pending, for messages to operators. */
export const MIGRATE_COMMAND = `"${CLI} migrate"`

/** Describes how many migrations are pending, at least one. */
export const countPending = ({ length }: readonly unknown[]) =>
  length === 1 ? '1 migration is pending' : `${length} migrations are pending`

/** Where the migrations of this version are: beside `src` and `dist`. */
const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../migrations', import.meta.url))

const Journal = z.object({ entries: z.array(z.object({ when: z.number(), tag: z.string() })) })

/** A migration as its file has it. */
export type Migration = {
  name: string
  /** When it was generated (ms); migrations are applied and recorded by it. */
  when: number
  /** SHA-256 of the file. */
  hash: string
  /** Its statements build or drop indexes without blocking writes: they run one by one, outside a transaction. */
  concurrent: boolean
  statements: readonly string[]
}

/** Reads all migrations, in their order. */
export async function loadMigrations(folder = MIGRATIONS_FOLDER): Promise<Migration[]> {
  const journal: unknown = JSON.parse(await readFile(`${folder}/meta/_journal.json`, 'utf8'))
  const { entries } = Journal.parse(journal)
  return await Promise.all(
    entries.map(async ({ tag: name, when }) => {
      const text = await readFile(`${folder}/${name}.sql`, 'utf8')
      const hash = createHash('sha256').update(text).digest('hex')
      const statements = text.split('--> statement-breakpoint').map((part) => part.trim())
      // Beside other statements Postgres refuses one of these.
      const concurrent = statements.every((one) => readIndexName(one) !== undefined)
      return { name, when, hash, statements, concurrent }
    }),
  )
}

const INDEX =
  /^(?:create (?:unique )?index|drop index) concurrently (?:if (?:not )?exists )?("[^"]+")/i

/** Reads which index a statement builds or drops without blocking writes, in quotes; undefined for any other. */
export const readIndexName = (text: string) => INDEX.exec(text)?.[1]

const ANOTHER = 'set DATA_DIR or DATABASE_URL to another one'

/** Those of this version do not change while it runs, and every probe of the health asks for them. */
let own: Promise<Migration[]> | undefined

/** Reads what this version has and what the database has, each in its order. @throws database errors */
async function readState(sql: Sql, folder?: string) {
  own ??= loadMigrations()
  const migrations = await (folder === undefined ? own : loadMigrations(folder))
  const applied = await sql<{ when: number; hash: string }[]>`
    select created_at::float8 as "when", hash from migrations order by created_at`.catch(
    (error: unknown) => {
      // The table or the schema does not exist.
      if (error instanceof Error && 'code' in error && /^(42P01|3F000)$/.test(String(error.code))) {
        return []
      }
      // What another program keeps under that name has other columns.
      if (error instanceof Error && 'code' in error && error.code === '42703') {
        throw new MigrationError(`The database is one of another program: ${ANOTHER}`)
      }
      throw error
    },
  )
  const done = new Set(applied.map(({ when }) => when))
  return { migrations, applied, pending: migrations.filter(({ when }) => !done.has(when)) }
}

/** Whether the database has every migration of this version, also if the next one has migrated it further beside this process. */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  return (await readState(sql)).pending.length === 0
}

/**
 * Returns the name of the newest migration that the database has; `newer than …` after the next version migrated it;
 * undefined without any.
 */
export async function readSchemaName(sql: Sql): Promise<string | undefined> {
  const { migrations, applied } = await readState(sql)
  const newest = applied.at(-1)
  if (!newest) return undefined
  const known = migrations.find(({ when }) => when === newest.when)?.name
  return known ?? `newer than ${migrations.at(-1)?.name}`
}

/**
 * Returns what `migrateDatabase` would apply now, in this order. Refuses a database that another version has migrated:
 * one with a migration that this version does not know, or with another text of one.
 * @throws MigrationError with one line that says what to do; database errors
 */
export async function planMigrations(sql: Sql, folder?: string): Promise<Migration[]> {
  const { migrations, applied, pending } = await readState(sql, folder)
  const known = new Map(migrations.map((one) => [one.when, one]))
  const other = applied.find(({ when, hash }) => known.get(when)?.hash !== hash)
  if (!other) return pending
  const name = known.get(other.when)?.name
  const what = name
    ? `its migration ${name} has another text`
    : 'this version lacks a migration of it'
  throw new MigrationError(
    `The database is one of another version: ${what}. Start the version that migrated it, or begin with an empty database: ${ANOTHER}`,
  )
}
