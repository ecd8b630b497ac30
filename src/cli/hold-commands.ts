import { userInfo } from 'node:os'
import { Argument, type Command, InvalidArgumentError } from 'commander'
import { changeHold } from '../holds/change-hold.ts'
import { findSubject, HOLD_TARGETS, type HoldTarget } from '../holds/find-subject.ts'
import { type ListedHold, listHolds } from '../holds/list-holds.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { Reason } from '../refunds/request/params.ts'
import { NO_LOG } from './change-keys.ts'
import { formatTable } from './format-table.ts'
import type { RunOnDatabase } from './with-database.ts'

type Print = (text: string) => void
type ChangeOptions = { reason: string; merchant?: string; json?: true }

/** Receivers stay encrypted in events, so the command line needs no encryption key. */
const NO_KEY = {
  decrypt(): never {
    throw new Error('the command line has no encryption key')
  },
}

/** Adds `holds list | set | release`. */
export function addHoldCommands(program: Command, print: Print, onDatabase: RunOnDatabase): void {
  const holds = program.command('holds').description('hold refunds back: list, set and release')
  holds
    .command('list')
    .description('list what is held, the oldest hold first')
    .option('--json', 'as JSON, for programs')
    .action(async ({ json }: { json?: true }) => {
      const found = await onDatabase((sql) => listHolds(sql))
      const rows = found.map((one) => ({ ...one, at: toIso(one.at) }))
      print(json ? formatJson(rows) : formatTable(HEADINGS, rows.map(formatRow)))
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
      .option('--json', 'as JSON, for programs')
      .action(async (target: HoldTarget, id: string, options: ChangeOptions) => {
        const state = await onDatabase((sql) => changeOne(sql, { held, target, id }, options))
        const done = held ? 'is held' : 'is no longer held'
        print(options.json ? formatJson(state) : `${target} ${id} ${done}\n`)
      })
  }
}

async function changeOne(
  sql: Sql,
  { held, target, id }: { held: boolean; target: HoldTarget; id: string },
  { reason, merchant }: ChangeOptions,
) {
  const rows = await sql<{ code: string }[]>`select merchant_code as code from merchant_accounts`
  const merchants = rows.map(({ code }) => code).filter((code) => code === (merchant ?? code))
  const subject = await findSubject(sql, merchants, target, id)
  const actor = { id: null, name: `cli (${userInfo().username})`, requestId: null }
  const operation = `holds ${held ? 'set' : 'release'}`
  const hold = await changeHold({ sql, log: NO_LOG, encryption: NO_KEY }, actor, subject, {
    held,
    reason,
    operation,
  })
  return { target, id: subject.id, merchantCode: subject.merchantCode, hold }
}

function readReason(text: string): string {
  const parsed = Reason.min(1).safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write 1 to 500 printable characters.')
}

const HEADINGS = ['SINCE', 'MERCHANT', 'TARGET', 'ID', 'BY', 'REASON']

function formatRow({ at, merchantCode, target, id, by, reason }: ListedHold): string[] {
  return [at, merchantCode, target, id, by, reason]
}

function formatJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
