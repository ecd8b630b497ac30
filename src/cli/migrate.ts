import type { Command } from 'commander'
import { type AppliedMigration, type MigrationLog, migrateDatabase } from '../db/migrate.ts'
import { type Migration, MigrationError, planMigrations } from '../db/migration-state.ts'
import { openSession } from '../platform/postgres/pool.ts'
import { ConnectionError, withDatabaseUrl } from './database.ts'
import { type Json, jsonOption } from './options.ts'
import type { Cli } from './print.ts'

type PlannedMigration = Pick<Migration, 'name' | 'concurrent' | 'statements'>

/** Adds `migrate`, which brings the schema up to this version apart from a start of the service. */
export function addMigrateCommand(program: Command, cli: Cli): void {
  const { emit, env } = cli
  // Exit code 1: the command was right, and may succeed when it is repeated.
  const onUrl = <T>(work: (url: string) => Promise<T>, create: boolean) =>
    withDatabaseUrl(work, env, { create }).catch((error: unknown) => {
      throw error instanceof ConnectionError ? new MigrationError(error.message) : error
    })
  program
    .command('migrate')
    .description('apply the pending migrations, each with its time; run it before a new version')
    .option('--plan', 'only show what would be applied')
    .addOption(jsonOption())
    .action(async ({ plan, json }: Json & { plan?: true }) => {
      if (plan) {
        const pending = await onUrl(readPlan, false)
        emit(json, { current: pending.length === 0, pending }, formatPlan(pending))
        return
      }
      const applied = await onUrl((url) => apply(url, cli, json), true)
      emit(json, { current: true, applied }, applied.length === 0 ? CURRENT : '')
    })
}

const CURRENT = 'the schema is current: nothing to apply\n'

async function readPlan(url: string): Promise<PlannedMigration[]> {
  const { sql, close } = openSession(url, 'ipn-processor')
  const pending = await planMigrations(sql).finally(close)
  return pending.map(({ name, concurrent, statements }) => ({ name, concurrent, statements }))
}

async function apply(
  url: string,
  { print, printError }: Cli,
  json: true | undefined,
): Promise<AppliedMigration[]> {
  const say = (_: object, text: string) => printError(`${text}\n`)
  const log: MigrationLog = { info: say, warn: say }
  return await migrateDatabase(url, {
    log,
    onApplied({ name, durationMs }) {
      if (!json) print(`applied ${name} in ${durationMs} ms\n`)
    },
  })
}

function formatPlan(pending: readonly PlannedMigration[]): string {
  if (pending.length === 0) return CURRENT
  const total = `${pending.length} pending, in this order:\n`
  return total + pending.map(formatMigration).join('')
}

function formatMigration({ name, concurrent, statements }: PlannedMigration): string {
  const how = concurrent
    ? 'each statement by itself, without blocking writes'
    : `in a transaction, ${statements.length} ${statements.length === 1 ? 'statement' : 'statements'}`
  const lines = statements.join('\n').split('\n')
  return `\n${name} (${how})\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}\n`
}
