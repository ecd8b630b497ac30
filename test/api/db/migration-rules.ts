import { readdirSync, readFileSync } from 'node:fs'
import { is } from 'drizzle-orm'
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core'
import * as schema from '../../../src/db/schema.ts'

/** Migrations before this one make the tables. */
const FIRST = '0001'

/** What takes something from the previous release, which runs beside the migrated schema, or refuses what it writes. */
const NARROWING = [
  /^drop (?!index concurrently)/,
  /^drop index concurrently/,
  /^create unique index/,
  /^create (or replace )?(trigger|rule)/,
  /^alter table (?<table>\S+) (drop|rename|alter column \S+ (set not null|set data type|type|drop default))\b/,
  /^alter table (?<table>\S+) add constraint/,
  /^truncate/,
]

/**
 * Returns what a migration does that the previous release may notice, one line each. A statement after a line
 * `-- contract: <why>` may narrow the schema, but never take away what an ON CONFLICT of this version names.
 */
export function findViolations(name: string, text: string): string[] {
  if (name.slice(0, 4) < FIRST) return []
  const statements = text.split('--> statement-breakpoint').map((chunk) => ({
    isMarked: /^-- contract: \S/m.test(chunk),
    statement: chunk
      .replace(/--[^\n]*/g, '')
      .replaceAll('"', '')
      .replace(/\s+/g, ' ')
      .trim()
      .toLowerCase(),
  }))
  const created = statements.flatMap(
    ({ statement }) => /^create table (?:if not exists )?(\S+)/.exec(statement)?.[1] ?? [],
  )
  return statements.flatMap(({ statement, isMarked }) => {
    const table =
      /^(?:alter table|create (?:unique )?index .*? on) (\S+)/.exec(statement)?.[1] ?? ''
    if (created.includes(table)) return []
    const arbiter = listArbiters().find((one) => isDropOf(statement, one))
    if (arbiter) return [`${name}: an ON CONFLICT of this version names ${arbiter}: ${statement}`]
    if (/^create (unique )?index (?!concurrently)/.test(statement)) {
      return [`${name}: build it concurrently, in a migration of its own: ${statement}`]
    }
    const narrows = !isMarked && NARROWING.some((pattern) => pattern.test(statement))
    return narrows ? [`${name}: the previous release may need it: ${statement}`] : []
  })
}

const isDropOf = (statement: string, index: string) =>
  new RegExp(`^(drop index|alter table \\S+ drop constraint)\\b.* ${index}\\b`).test(statement)

/** Returns the unique keys and constraints that an ON CONFLICT in the sources names, by name or by its columns. */
export function listArbiters(): string[] {
  arbiters ??= findArbiters()
  return arbiters
}

/** They are the same all along: the sources are read once. */
let arbiters: string[] | undefined

function findArbiters(): string[] {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(`src/${file}`, 'utf8'))
    .join('\n')
  const named = [...sources.matchAll(/on conflict on constraint (\w+)/g)].map(([, one]) => one)
  const inferred = [...sources.matchAll(/on conflict \(([^)]+)\)/g)].map(([, columns = '']) =>
    columns.replaceAll('"', ''),
  )
  return Object.values(schema)
    .filter((one) => is(one, PgTable))
    .flatMap(listKeys)
    .filter(({ name, columns }) => named.includes(name) || inferred.includes(columns))
    .map(({ name }) => name)
}

function listKeys(table: PgTable): { name: string; columns: string }[] {
  const { name, columns, primaryKeys, uniqueConstraints, indexes } = getTableConfig(table)
  const join = (parts: readonly object[]) =>
    parts.map((part) => ('name' in part ? String(part.name) : '?')).join(', ')
  return [
    ...columns
      .filter(({ primary }) => primary)
      .map((column) => ({ name: `${name}_pkey`, columns: column.name })),
    ...[...primaryKeys, ...uniqueConstraints].map((key) => ({
      name: key.getName() ?? '',
      columns: join(key.columns),
    })),
    ...indexes
      .filter(({ config }) => config.unique)
      .map(({ config }) => ({ name: config.name ?? '', columns: join(config.columns) })),
  ]
}
