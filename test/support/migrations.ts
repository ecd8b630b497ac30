import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { MigrationLog } from '../../src/db/migrate.ts'
import type { TestDatabase } from './database.ts'
import { makeFolder } from './embedded.ts'

const Journal = z.looseObject({ entries: z.array(z.looseObject({ when: z.number() })) })

/** A log that keeps the text of its lines. */
export function createLines(): { log: MigrationLog; lines: string[] } {
  const lines: string[] = []
  const keep = (_: object, text: string) => void lines.push(text)
  return { log: { info: keep, warn: keep }, lines }
}

/** Makes a database look as the version before left it. @returns what undoes that */
export async function forgetNewest({
  sql,
}: Pick<TestDatabase, 'sql'>): Promise<() => Promise<void>> {
  const [newest] = await sql`
    delete from migrations
    where created_at = (select max(created_at) from migrations)
    returning hash, created_at::float8`
  return async () => void (await sql`insert into migrations ${sql({ ...newest })}`)
}

/** Copies this version's migrations into a folder of the test, and adds others behind them: name and text. */
export function plantMigrations(planted: Record<string, string>): string {
  const folder = makeFolder()
  cpSync('migrations', folder, { recursive: true })
  const file = join(folder, 'meta/_journal.json')
  const journal = Journal.parse(JSON.parse(readFileSync(file, 'utf8')))
  const newest = Math.max(...journal.entries.map(({ when }) => when))
  Object.entries(planted).forEach(([tag, text], index) => {
    writeFileSync(join(folder, `${tag}.sql`), text)
    journal.entries.push({ idx: 100 + index, when: newest + 1 + index, tag, breakpoints: true })
  })
  writeFileSync(file, JSON.stringify(journal))
  return folder
}
