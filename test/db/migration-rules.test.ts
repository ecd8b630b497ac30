import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { is } from 'drizzle-orm'
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core'
import { expect, it, onTestFinished } from 'vitest'
import * as schema from '../../src/db/schema.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Lints a migration by the project's rules, as `npm run check` does. */
function lint(name: string, text: string): number | null {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-migration-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'migrations'))
  writeFileSync(join(folder, 'migrations', name), text)
  const squawk = join(ROOT, 'node_modules/.bin/squawk')
  const args = ['--config', join(ROOT, '.squawk.toml'), '--no-error-on-unmatched-pattern']
  return spawnSync(squawk, [...args, `migrations/${name}`], { cwd: folder }).status
}

it.each([
  ['renames a column', 'ALTER TABLE "payments" RENAME COLUMN "missing" TO "gone";'],
  ['drops a column', 'ALTER TABLE "payments" DROP COLUMN "missing";'],
  ['changes the type of a column', 'ALTER TABLE "payments" ALTER COLUMN "amount" TYPE bigint;'],
  ['drops a table', 'DROP TABLE "payments";'],
  ['blocks writes for an index', 'CREATE INDEX "x" ON "payments" ("amount");'],
  ['adds a column that must be given', 'ALTER TABLE "payments" ADD COLUMN "x" text NOT NULL;'],
])('a new migration that %s does not pass the check', (_, text) => {
  expect(lint('0009_planted.sql', text)).toBe(1)
  // Published migrations stay as they are.
  expect(lint('0007_refund_request.sql', text)).toBe(0)
})

it('a migration that only adds what the previous release ignores passes', () => {
  expect(lint('0009_planted.sql', 'ALTER TABLE "payments" ADD COLUMN "note" text;')).toBe(0)
})

it('npm run check lints the migrations', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  expect(scripts.check).toMatch(/squawk .*migrations\/\*\.sql/)
})

const listMigrations = (folder: string) =>
  readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.sql'))
const PREVIOUS = 'test/fixtures/previous-release/migrations'

it('the migrations of the previous release are still what they were', () => {
  const published = listMigrations(PREVIOUS)
  expect(published.length).toBeGreaterThan(20)
  const read = (folder: string, name: string) => readFileSync(join(ROOT, folder, name), 'utf8')
  const edited = published.filter((name) => read('migrations', name) !== read(PREVIOUS, name))
  expect(edited).toEqual([])
})

it('a migration changes one table at most: while it waits for a second one, everything waits for the first', () => {
  const published = listMigrations(PREVIOUS)
  const later = listMigrations('migrations').filter((name) => !published.includes(name))
  const changed = later.map((name) => {
    const text = readFileSync(join(ROOT, 'migrations', name), 'utf8')
    const tables = [...text.matchAll(/^ALTER TABLE (?:ONLY )?"(\w+)"/gim)].map(([, table]) => table)
    const own = tables.filter((table) => !text.includes(`CREATE TABLE "${table}"`))
    return { name, tables: [...new Set(own)] }
  })
  expect(changed.filter(({ tables }) => tables.length > 1)).toEqual([])
})

/** Primary and unique keys that were published before the rule, or belong to no merchant; each is unique by itself. */
const PUBLISHED = [
  'api_key_days_pkey',
  'api_key_minutes_pkey',
  'api_keys_hash',
  'api_keys_replaced_once',
  'audit_entries.id',
  'audit_progress.only',
  'changes.id',
  'data_keys_pkey',
  'discrepancies.id',
  'event_outbox.id',
  'event_removals.only',
  'events.id',
  'gateway_calls.id',
  'ipn_events.id',
  'people.id',
  'refund_attempts.id',
  'sessions.id',
  'sessions_token',
  'sign_in_attempts_pkey',
  'sign_in_links_pkey',
  'webhook_deliveries_pkey',
  'webhook_endpoints.id',
  'api_keys.id',
]

it('every new primary or unique key begins with the merchant, so that tables can be distributed by it', () => {
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
  expect(others.toSorted()).toEqual(PUBLISHED.toSorted())
})
