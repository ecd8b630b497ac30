import { is } from 'drizzle-orm'
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core'
import * as schema from '../../../src/db/schema.ts'

const BREAK = ';--> statement-breakpoint\n'

/** The tables that every notification, query and refund writes. */
const HOT = ['ipn_events', 'transactions', 'payments', 'refunds', 'gateway_calls', 'changes']

/**
 * Replaces the constraint that the intake names in `ON CONFLICT` by one of other columns, which no release may do: the
 * releases that run find none that matches.
 */
export const REPLACED_CONSTRAINT = {
  '9000_replace_one_text': [
    'ALTER TABLE "ipn_events" DROP CONSTRAINT "ipn_events_one_text"',
    'ALTER TABLE "ipn_events" ADD CONSTRAINT "ipn_events_one_text" UNIQUE("merchant_code","text_hash")',
  ].join(BREAK),
}

/**
 * Plans the migrations of a next release, by name. Every table gets what may be added to it: a column without a value, one
 * with a value, and a check; the busy ones an index, too. A statement that takes all columns of a table, or writes
 * them by position, meets columns that it does not know.
 */
export function planNext(): Record<string, string> {
  const tables = Object.values(schema).filter((one) => is(one, PgTable))
  const columns = tables.map((table, index) => {
    const { name } = getTableConfig(table)
    const statements = [
      `ALTER TABLE "${name}" ADD COLUMN "next_note" text`,
      `ALTER TABLE "${name}" ADD COLUMN "next_count" bigint DEFAULT 0 NOT NULL`,
      `ALTER TABLE "${name}" ADD CONSTRAINT "${name}_next" CHECK ("next_count" >= 0) NOT VALID`,
    ]
    return [`${9000 + index}_next_${name}`, statements.join(BREAK)]
  })
  const checks = HOT.map((name) => `ALTER TABLE "${name}" VALIDATE CONSTRAINT "${name}_next"`)
  const indexes = HOT.map(
    (name) =>
      `CREATE INDEX CONCURRENTLY "${name}_by_next" ON "${name}" ("next_note", "next_count")`,
  )
  return {
    ...Object.fromEntries(columns),
    '9900_next_table': 'CREATE TABLE "next_table" ("id" bigint PRIMARY KEY)',
    ...Object.fromEntries(checks.map((text, index) => [`${9910 + index}_next_check`, text])),
    '9920_next_indexes': indexes.join(BREAK),
  }
}
