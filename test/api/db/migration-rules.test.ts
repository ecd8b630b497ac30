import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { is } from 'drizzle-orm'
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core'
import { expect, it } from 'vitest'
import { loadMigrations } from '../../../src/db/migration-state.ts'
import * as schema from '../../../src/db/schema.ts'
import { makeFolder } from '../../support/embedded.ts'
import { findViolations, listArbiters } from './migration-rules.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Lints migrations by the project's rules, as `npm run check` does; returns the names of those that break one. */
function lint(migrations: Record<string, string>): { status: number | null; broken: string[] } {
  const folder = makeFolder()
  mkdirSync(join(folder, 'migrations'))
  const paths = Object.entries(migrations).map(([name, text]) => {
    writeFileSync(join(folder, 'migrations', name), text)
    return `migrations/${name}`
  })
  const squawk = join(ROOT, 'node_modules/.bin/squawk')
  const args = ['--config', join(ROOT, '.squawk.toml'), '--no-error-on-unmatched-pattern']
  const options = { cwd: folder, encoding: 'utf8' } as const
  const { status, stdout } = spawnSync(squawk, [...args, '--reporter', 'Gcc', ...paths], options)
  const found = [...stdout.matchAll(/^migrations\/([^:]+):/gm)].map(([, name = '']) => name)
  return { status, broken: [...new Set(found)].sort() }
}

const NARROWING = {
  '0009_renames_a_column.sql': 'ALTER TABLE "payments" RENAME COLUMN "missing" TO "gone";',
  '0009_drops_a_column.sql': 'ALTER TABLE "payments" DROP COLUMN "missing";',
  '0009_changes_a_type.sql': 'ALTER TABLE "payments" ALTER COLUMN "amount" TYPE bigint;',
  '0009_drops_a_table.sql': 'DROP TABLE "payments";',
  '0009_blocks_writes.sql': 'CREATE INDEX "x" ON "payments" ("amount");',
  '0009_must_be_given.sql': 'ALTER TABLE "payments" ADD COLUMN "x" text NOT NULL;',
}

it('a new migration that takes something away, or that blocks, does not pass the check', () => {
  expect(lint(NARROWING)).toEqual({ status: 1, broken: Object.keys(NARROWING).sort() })
})

it('one that only adds, builds an index concurrently, or makes the tables passes', () => {
  const passing = {
    '0009_adds.sql': 'ALTER TABLE "payments" ADD COLUMN "note" text;',
    '0099_index.sql': 'CREATE INDEX CONCURRENTLY "x" ON "payments" USING btree ("amount");',
    '0000_initial.sql': Object.values(NARROWING).join('\n'),
  }
  expect(lint(passing)).toEqual({ status: 0, broken: [] })
})

/** The SHA-256 of every migration of a release: a database that has another one of the same name is refused. */
const RELEASED = {
  '0000_initial': '48bb7c3de8a766464ebec278802e76cea3633081f77c81dbc4789d5c3f178730',
}

it('a migration of a release stays as it was released', async () => {
  const hashes = (await loadMigrations()).map(({ name, hash }) => [name, hash])
  expect(Object.fromEntries(hashes)).toMatchObject(RELEASED)
})

it('npm run check lints the migrations', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(scripts.check).toMatch(/squawk .*migrations\/\*\.sql/)
})

const listMigrations = (folder: string) =>
  readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.sql'))
it('a migration changes one table at most: while it waits for a second one, everything waits for the first', () => {
  const later = listMigrations('migrations').filter((name) => !name.startsWith('0000_'))
  const changed = later.map((name) => {
    const text = readFileSync(join(ROOT, 'migrations', name), 'utf8')
    const tables = [...text.matchAll(/^ALTER TABLE (?:ONLY )?"(\w+)"/gim)].map(([, table]) => table)
    const own = tables.filter((table) => !text.includes(`CREATE TABLE "${table}"`))
    return { name, tables: [...new Set(own)] }
  })
  expect(changed.filter(({ tables }) => tables.length > 1)).toEqual([])
})

it.each([
  ['builds an index while writes wait', 'CREATE INDEX "x" ON "payments" ("amount");'],
  ['drops an index', 'DROP INDEX CONCURRENTLY "payments_amount";'],
  ['drops a constraint', 'ALTER TABLE "payments" DROP CONSTRAINT "x";'],
  ['refuses duplicates', 'CREATE UNIQUE INDEX CONCURRENTLY "x" ON "payments" ("amount");'],
  ['adds a constraint', 'ALTER TABLE "payments" ADD CONSTRAINT "x" CHECK (true) NOT VALID;'],
  ['takes a default away', 'ALTER TABLE "payments" ALTER COLUMN "missing" DROP DEFAULT;'],
])(
  'a migration that %s is found, unless the table is new or it says why the previous release is not concerned',
  (_, text) => {
    expect(findViolations('0099_planted.sql', text)).toHaveLength(1)
    const planted = `CREATE TABLE "other" ();--> statement-breakpoint\n${text}`
    expect(findViolations('0099_planted.sql', planted)).toHaveLength(1)
    expect(
      findViolations('0099_planted.sql', planted.replace('"other"', '"payments"')),
    ).toHaveLength(text.startsWith('DROP') ? 1 : 0)
    const marked = `-- contract: unused since 0.2.0\n${text}`
    expect(findViolations('0099_planted.sql', marked)).toHaveLength(
      text.includes(' INDEX "x"') ? 1 : 0,
    )
  },
)

it.each([
  ['ALTER TABLE "ipn_events" DROP CONSTRAINT "ipn_events_one_text";'],
  ['ALTER TABLE "transactions" DROP CONSTRAINT IF EXISTS "transactions_pkey";'],
  ['DROP INDEX CONCURRENTLY "discrepancies_once";'],
])('what an ON CONFLICT names is never dropped, whatever the migration says: %s', (text) => {
  const marked = `-- contract: replaced by another\n${text}`
  expect(findViolations('0099_planted.sql', marked)).toEqual([
    expect.stringContaining('an ON CONFLICT of this version names'),
  ])
})

it('the migrations of this repository keep the rules, and each can be run', async () => {
  const files = readdirSync(join(ROOT, 'migrations')).filter((file) => file.endsWith('.sql'))
  const violations = files.flatMap((file) =>
    findViolations(file, readFileSync(join(ROOT, 'migrations', file), 'utf8')),
  )
  expect(violations).toEqual([])
  expect(listArbiters().length).toBeGreaterThan(10)
  expect(await loadMigrations()).toHaveLength(files.length)
})

/** Primary and unique keys of numbers and ids that this service assigns, or of what belongs to no merchant. */
const WITHOUT_MERCHANT = [
  ...['actors.id', 'actors_hash', 'actors_replaced_once', 'audit_entries.id'],
  ...['audit_checkpoints_pkey', 'data_keys_pkey', 'event_outbox.id', 'event_removals.only'],
  ...['events.id', 'gateway_calls.id', 'installation.only', 'ipn_events.id', 'processes.id'],
  ...['sessions.id', 'sessions_token', 'sessions_link', 'webhook_endpoints.id'],
  ...['webhook_retries_pkey'],
]

it('every other primary or unique key begins with the merchant, so that tables can be distributed by it', () => {
  const tables = Object.values(schema).filter((one) => is(one, PgTable))
  expect(tables.length).toBeGreaterThan(12)
  const keys = tables.flatMap((table) => {
    const { name, columns, primaryKeys, uniqueConstraints } = getTableConfig(table)
    return [
      ...columns
        .filter(({ primary, isUnique }) => primary || isUnique)
        .map((column) => ({ name: `${name}.${column.name}`, first: column.name })),
      ...primaryKeys.map((key) => ({ name: key.getName(), first: key.columns[0]?.name })),
      ...uniqueConstraints.map((key) => ({ name: key.getName(), first: key.columns[0]?.name })),
    ]
  })
  const others = keys.filter(({ first }) => first !== 'merchant_code').map(({ name }) => name)
  expect(others.toSorted()).toEqual(WITHOUT_MERCHANT.toSorted())
})
