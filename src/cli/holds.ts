import { Argument, type Command } from 'commander'
import { changeHold, findSubject, type ListedHold, listHolds } from '../decisions/holds.ts'
import { HOLD_TARGETS, type HoldTarget } from '../decisions/second-person.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { Reason } from '../refunds/request-schema.ts'
import { readActor } from './database.ts'
import { type Json, jsonOption, readAs } from './options.ts'
import { type Cli, formatTable, NO_KEY } from './print.ts'

type ChangeOptions = Json & { reason: string; merchant?: string }

export function addHoldCommands(program: Command, { emit, onDatabase, log }: Cli): void {
  const holds = program.command('holds').description('hold refunds back: list, set and release')
  holds
    .command('list')
    .description('list what is held, the oldest hold first')
    .addOption(jsonOption())
    .action(async ({ json }: Json) => {
      const found = await onDatabase((sql) => listHolds(sql))
      const rows = found.map((one) => ({ ...one, at: toIso(one.at) }))
      emit(json, rows, formatTable(HEADINGS, rows.map(formatRow)))
    })
  for (const [name, held] of [
    ['set', true],
    ['release', false],
  ] as const) {
    holds
      .command(name)
      .description(held ? 'hold: nothing of the target is sent' : 'release a hold')
      .addArgument(new Argument('<target>', 'what to hold').choices(HOLD_TARGETS))
      .argument('<id>', 'the merchant code, or the id of the payment or the refund')
      .requiredOption('--reason <text>', 'why; shown to readers', readReason)
      .option('--merchant <code>', 'the merchant account, if several have the id')
      .addOption(jsonOption())
      .action(async (target: HoldTarget, id: string, options: ChangeOptions) => {
        const state = await onDatabase((sql) =>
          changeOne({ sql, log }, { held, target, id }, options),
        )
        const done = held ? 'is held' : 'is no longer held'
        emit(options.json, state, `${target} ${id} ${done}\n`)
      })
  }
}

async function changeOne(
  { sql, log }: { sql: Sql; log: Log },
  { held, target, id }: { held: boolean; target: HoldTarget; id: string },
  { reason, merchant }: ChangeOptions,
) {
  const rows = await sql<{ code: string }[]>`select merchant_code as code from merchant_accounts`
  const merchants = rows.map(({ code }) => code).filter((code) => code === (merchant ?? code))
  const subject = await findSubject(sql, merchants, target, id)
  const change = { held, reason, operation: `holds ${held ? 'set' : 'release'}` }
  const ctx = { sql, log, encryption: NO_KEY }
  const hold = await changeHold(ctx, readActor(), subject, change)
  return { target, id: subject.id, merchantCode: subject.merchantCode, hold }
}

const readReason = readAs(Reason.min(1), 'Write 1 to 500 printable characters.')

const HEADINGS = ['SINCE', 'MERCHANT', 'TARGET', 'ID', 'BY', 'REASON']

function formatRow({ at, merchantCode, target, id, by, reason }: ListedHold): string[] {
  return [at, merchantCode, target, id, by, reason]
}
