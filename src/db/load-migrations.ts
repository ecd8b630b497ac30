import { readMigrationFiles } from 'drizzle-orm/migrator'
import { MigrationError } from './migration-error.ts'
import { MIGRATIONS_FOLDER, readJournal } from './pending-migrations.ts'

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
