import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Writes a migration: `npm run db:generate -- --name add_notes`. drizzle-kit names the schema of each referenced table,
 * and the table of each column in an expression; both are left out, so that a migration can be applied in any schema of a
 * database.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDER = join(ROOT, 'migrations')

const listMigrations = () => readdirSync(FOLDER).filter((file) => file.endsWith('.sql'))

const before = listMigrations()
const { status } = spawnSync(
  join(ROOT, 'node_modules/.bin/drizzle-kit'),
  ['generate', ...process.argv.slice(2)],
  { cwd: ROOT, stdio: 'inherit' },
)
for (const file of listMigrations().filter((one) => !before.includes(one))) {
  const path = join(FOLDER, file)
  writeFileSync(path, `${readFileSync(path, 'utf8').replace(/"\w+"\.("\w+")/g, '$1')}\n`)
}
process.exitCode = status ?? 1
