import { migrateDatabase } from '../db/migrate.ts'
import { type Migration, planMigrations } from '../db/migration-state.ts'
import { confirmNothingLost, confirmRestore } from '../maintenance/restore.ts'
import { openSession } from '../platform/postgres/pool.ts'
import { type Cli, command, type Output } from './command.ts'
import { NO_KEY, readActor, withDatabaseUrl } from './database.ts'
import { flag } from './values.ts'

const CURRENT = 'the schema is current: nothing to apply\n'

export const MIGRATE = command({
  name: 'migrate',
  description: 'apply the pending migrations, each with its time; run it before a new version',
  input: { plan: flag('only show what would be applied') },
  async run(cli, { plan }) {
    const work = plan ? readPlan : apply
    return await withDatabaseUrl<Output>((url) => work(url, cli), cli.env, { create: !plan })
  },
})

async function readPlan(url: string) {
  const { sql, close } = openSession(url, 'ipn-processor')
  const planned = await planMigrations(sql).finally(close)
  const pending = planned.map(({ name, concurrent, statements }) => {
    return { name, concurrent, statements }
  })
  const total = `${pending.length} pending, in this order:\n`
  const text = pending.length === 0 ? CURRENT : total + planned.map(formatMigration).join('')
  return { value: { current: pending.length === 0, pending }, text }
}

async function apply(url: string, { json, print, printError }: Cli) {
  const say = (_: object, text: string) => printError(`${text}\n`)
  const applied = await migrateDatabase(url, {
    log: { info: say, warn: say },
    onApplied({ name, durationMs }) {
      if (!json) print(`applied ${name} in ${durationMs} ms\n`)
    },
  })
  return { value: { current: true, applied }, text: applied.length === 0 ? CURRENT : '' }
}

function formatMigration({ name, concurrent, statements }: Migration): string {
  const how = concurrent
    ? 'each statement by itself, without blocking writes'
    : `in a transaction, ${statements.length} ${statements.length === 1 ? 'statement' : 'statements'}`
  const lines = statements.join('\n').split('\n')
  return `\n${name} (${how})\n${lines.map((line) => `  ${line}`.trimEnd()).join('\n')}\n`
}

export const RESTORED = command({
  name: 'restored',
  description: 'let refunds and events be sent again after the database was restored',
  input: {
    nothingLost: flag('no commit was lost: cursors and ETags stay valid, nothing is held'),
  },
  async run({ onDatabase, log }, { nothingLost }) {
    if (nothingLost) {
      const stop = await onDatabase(({ sql }) => confirmNothingLost(sql, log, readActor()))
      const text = stop
        ? `refunds and events are sent again, which they were not since ${stop.since} because ${stop.because}`
        : 'nothing was stopped'
      return { value: { stopped: stop ?? null }, text: `${text}\n` }
    }
    const done = await onDatabase((db) =>
      confirmRestore({ db, log, encryption: NO_KEY }, readActor()),
    )
    const { epoch, held, asked } = done
    const text = `epoch ${epoch}: refunds and events are sent again; ${held} refunds that were not sent are held for a person, and the gateway is asked about ${asked} transactions with open refunds; see docs/operations.md\n`
    return { value: done, text }
  },
})
