import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const TEST = fileURLToPath(new URL('..', import.meta.url))

/**
 * The files of `npm test` that create databases, and what a borrowed one cannot give them. Each costs as much as a dozen
 * tests that only store rows.
 */
const OWN = {
  'test/process/cli/keys.test.ts': 'has no schema',
  'test/process/cli/cells.test.ts': 'has a schema for each of several installations',
  'test/process/cli/migrate.test.ts': 'migrates',
  'test/api/db/constraints.test.ts': 'violates every constraint',
  'test/races/migrate-beside-traffic.test.ts': 'migrates',
  'test/races/migrate-concurrently.test.ts': 'migrates',
  'test/api/db/migrate.test.ts': 'migrates',
  'test/process/cells.test.ts': 'has a schema for each of several installations',
  'test/api/platform/http/answers.test.ts': 'loses tables',
  'test/process/postgres/ended-session.test.ts': 'has a table of its own',
  'test/process/postgres/lost-connection.test.ts': 'has a table of its own',
  'test/api/platform/postgres/notify.test.ts': 'has a table of its own',
  'test/api/platform/postgres/pipeline.test.ts': 'has a table of its own',
  'test/api/platform/postgres/session-setup.test.ts': 'changes settings of the database',
  'test/process/without-notify.test.ts': 'replaces a function of Postgres',
  'test/process/start/check.test.ts':
    'has older schemas, other functions of Postgres, and databases that cannot be written',
}

/** Run apart from the suite, or read as text. */
const APART = /^(nightly|fuzz)\/|^project\/own-databases/

it('only files that say why create databases; all others borrow', () => {
  const creating = readdirSync(TEST, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts') && !APART.test(path))
    .filter((path) =>
      /\b(createTestDatabase|createOwnDatabase|useOwnDatabase)\(/.test(
        readFileSync(TEST + path, 'utf8'),
      ),
    )
  expect(creating.map((path) => `test/${path}`).sort()).toEqual(Object.keys(OWN).sort())
})
