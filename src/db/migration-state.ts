import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { readErrorCode } from '../platform/error-code.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { CLI } from '../version.ts'

/** Says why the schema is not current and what to do about it. Operators see the message without a stack. */
export class MigrationError extends Error {
  override name = 'MigrationError'
}

export const MIGRATE_COMMAND = `"${CLI} migrate"`

/** Describes how many migrations are pending; there must be at least one. */
export const countPending = ({ length }: readonly unknown[]) =>
  length === 1 ? '1 migration is pending' : `${length} migrations are pending`

/** The migrations of this version, next to `src` and `dist`. */
const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../migrations', import.meta.url))

const Journal = z.object({ entries: z.array(z.object({ when: z.number(), tag: z.string() })) })

export type Migration = {
  name: string
  /** When it was generated (ms). Migrations are ordered and recorded by this time. */
  when: number
  hash: string
  /** Its statements create or drop indexes concurrently, so they run one by one, outside a transaction. */
  concurrent: boolean
  statements: readonly string[]
}

export async function loadMigrations(folder = MIGRATIONS_FOLDER): Promise<Migration[]> {
  const journal: unknown = JSON.parse(await readFile(`${folder}/meta/_journal.json`, 'utf8'))
  const { entries } = Journal.parse(journal)
  return await Promise.all(
    entries.map(async ({ tag: name, when }) => {
      const text = await readFile(`${folder}/${name}.sql`, 'utf8')
      const hash = createHash('sha256').update(text).digest('hex')
      const statements = text.split('--> statement-breakpoint').map((part) => part.trim())
      // Postgres refuses such a statement together with others.
      const concurrent = statements.every((one) => readIndexName(one) !== undefined)
      return { name, when, hash, statements, concurrent }
    }),
  )
}

const INDEX =
  /^(?:create (?:unique )?index|drop index) concurrently (?:if (?:not )?exists )?("[^"]+")/i

/** Returns the quoted name of the index that a statement creates or drops concurrently, if it does. */
export const readIndexName = (text: string) => INDEX.exec(text)?.[1]

const ANOTHER = 'set DATA_DIR or DATABASE_URL to another one'

/** Cached, because every health probe needs them and they do not change while the process runs. */
let own: Promise<Migration[]> | undefined

/** Reads the migrations of this version and those applied to the database, each in order. @throws database errors */
async function readState(sql: Sql, folder?: string) {
  own ??= loadMigrations()
  const migrations = await (folder === undefined ? own : loadMigrations(folder))
  const applied = await sql<{ when: number; hash: string }[]>`
    select created_at::float8 as "when", hash from migrations order by created_at`.catch(
    (error: unknown) => {
      const code = readErrorCode(error)
      // The table or the schema does not exist yet.
      if (code === '42P01' || code === '3F000') return []
      // Another program has a table of that name with other columns.
      if (code === '42703') {
        throw new MigrationError(`The database is one of another program: ${ANOTHER}`)
      }
      throw error
    },
  )
  const done = new Set(applied.map(({ when }) => when))
  return { migrations, applied, pending: migrations.filter(({ when }) => !done.has(when)) }
}

/** Returns whether the database has every migration of this version. It may also have newer ones. */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  return (await readState(sql)).pending.length === 0
}

/** Returns the name of the newest applied migration, or `newer than …` if a newer version has migrated the database. */
export async function readSchemaName(sql: Sql): Promise<string | undefined> {
  const { migrations, applied } = await readState(sql)
  const newest = applied.at(-1)
  if (!newest) return undefined
  const known = migrations.find(({ when }) => when === newest.when)?.name
  return known ?? `newer than ${migrations.at(-1)?.name}`
}

/**
 * Returns what `migrateDatabase` would apply now, in order. Refuses a database that has a migration which this
 * version does not know, or knows with a different text.
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
