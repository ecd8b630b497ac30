import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/environment.ts'
import { WRONG_KEY } from '../db/data-keys.ts'
import { MigrationError } from '../db/migration-state.ts'
import { DomainError } from '../errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import { createLog } from '../platform/telemetry/log.ts'
import { AUDIT } from './audit.ts'
import { CELLS } from './cells.ts'
import { type AddCommand, type CliStreams, RefusedError, UsageError } from './command.ts'
import { withDatabase } from './database.ts'
import { DOCTOR } from './doctor.ts'
import { EXPORTS } from './export.ts'
import { FOLLOW } from './follow.ts'
import { HOLDS } from './holds.ts'
import { KEYS } from './keys.ts'
import { MIGRATE, RESTORED } from './migrate.ts'
import { PEOPLE } from './people.ts'
import { PROBE } from './probe.ts'
import { RECONCILE } from './reconcile.ts'
import { REPLAY } from './replay.ts'
import { REQUEUE } from './requeue.ts'
import { SHOW } from './show.ts'
import { SIGNING } from './sign.ts'

const GROUPS = {
  export: 'write every row of a list, as the API has it, as CSV or lines of JSON',
  keys: 'create, list, rotate and revoke API keys; encrypt stored data again',
  people: 'people who may use the console: add, link, list and remove',
  cells:
    'installations in schemas of one database, on several servers with Citus: list, distribute and move',
  holds: 'hold refunds back: list, set and release',
}

const COMMANDS: readonly AddCommand[] = [
  ...[SHOW, FOLLOW, ...EXPORTS, REPLAY, REQUEUE, RECONCILE, ...SIGNING, ...KEYS, ...PEOPLE],
  ...[...HOLDS, ...CELLS, ...AUDIT, MIGRATE, RESTORED, DOCTOR, PROBE],
]

const EXIT = { done: 0, finding: 1, usage: 2 }

/**
 * Runs the operator's command line. Never rejects.
 * @param args what follows the program's name
 * @returns the exit code: 0 success, 1 a finding, a refusal or a failure, 2 incorrect usage
 */
export async function runCli(args: readonly string[], streams: CliStreams): Promise<number> {
  const { print, printError, input } = streams
  const program = new Command('cli')
    .description("The operator's command line")
    .option('--no-input', 'never ask: what would have to be asked is refused')
    .exitOverride()
    .configureOutput({ writeOut: print, writeErr: () => {} })
  for (const [name, text] of Object.entries(GROUPS)) program.command(name).description(text)
  let code = EXIT.done
  for (const add of COMMANDS) {
    add(program, async (mayAsk, json, work) => {
      const output = await work({
        ...{ ...streams, json, canAsk: mayAsk && input.isTTY === true },
        onDatabase: (use) => withDatabase(use, streams),
        change: (use) => withDatabase(({ sql }) => runInTransaction(sql, use), streams),
        log: createLog('info', { write: printError }),
      })
      if (output?.isFinding) code = EXIT.finding
      if (output) print(json ? `${JSON.stringify(output.value, null, 2)}\n` : output.text)
    })
  }
  try {
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    const { lines, code: exitCode } = describe(error, streams.name)
    printError(lines.map((line) => `error: ${line}\n`).join(''))
    return exitCode
  }
}

/** Describes an error, and chooses the exit code. Option values are never printed: they could be secrets. */
function describe(error: unknown, name: string): { lines: readonly string[]; code: number } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { lines: [], code: EXIT.done }
    const message = error.message
      .replace(/^error: |\.$/g, '')
      .replace('(outputHelp)', 'no command given')
      .replace('\n(Did you mean', ' (did you mean')
      .replace(/^(unknown option '[^'=]*)=.*$/s, "$1'")
    return { lines: [`${message}; see ${name} --help`], code: EXIT.usage }
  }
  // A ConfigError, but the command was typed correctly.
  if (error === WRONG_KEY) return { lines: WRONG_KEY.lines, code: EXIT.finding }
  if (error instanceof DomainError) {
    return { lines: [error.message.replace('?merchantCode=', '--merchant')], code: EXIT.finding }
  }
  if (error instanceof MigrationError || error instanceof RefusedError)
    return { lines: [error.message], code: EXIT.finding }
  if (error instanceof ConfigError) return { lines: error.lines, code: EXIT.usage }
  if (error instanceof UsageError) return { lines: [error.message], code: EXIT.usage }
  return { lines: [`unexpected error: ${error}`], code: EXIT.finding }
}
