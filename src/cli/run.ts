import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/environment.ts'
import { WRONG_KEY } from '../db/data-keys.ts'
import { MigrationError } from '../db/migration-state.ts'
import { DomainError } from '../errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import { createLog } from '../platform/telemetry/log.ts'
import { addAuditCommand } from './audit.ts'
import { withDatabase } from './database.ts'
import { addDoctorCommand } from './doctor.ts'
import { addExportCommand } from './export.ts'
import { addFollowCommand } from './follow.ts'
import { addHoldCommands } from './holds.ts'
import { addKeyCommands } from './keys.ts'
import { addMigrateCommand } from './migrate.ts'
import { UsageError } from './options.ts'
import { addPeopleCommands } from './people.ts'
import type { Cli } from './print.ts'
import { addProbeCommand } from './probe.ts'
import { addReconcileCommand } from './reconcile.ts'
import { addReplayCommand } from './replay.ts'
import { addRequeueCommand } from './requeue.ts'
import { addRestoredCommand } from './restored.ts'
import { addShowCommand } from './show.ts'
import { addSigningCommands } from './sign.ts'

const EXIT = { done: 0, invalid: 1, usage: 2, failed: 3 }

/** What the command line reads and writes. */
export type CliStreams = Pick<Cli, 'name' | 'input' | 'env' | 'print' | 'printError' | 'isTerminal'>

/**
 * Runs the operator's command line. Never rejects.
 * @param args what follows the program's name
 * @returns the exit code: 0 success, 1 a finding or a refusal, 2 incorrect usage, 3 an unexpected error
 */
export async function runCli(args: readonly string[], streams: CliStreams): Promise<number> {
  let code = EXIT.done
  const cli: Cli = {
    ...streams,
    emit: (json, value, text) => streams.print(json ? `${JSON.stringify(value, null, 2)}\n` : text),
    onDatabase: (work) => withDatabase(work, streams),
    change: (work) => withDatabase((sql) => runInTransaction(sql, work), streams),
    log: createLog('info', { write: streams.printError }),
    setExitCode: (exitCode) => {
      code = exitCode
    },
  }
  try {
    await buildProgram(cli).parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    const { lines, code: exitCode } = describe(error, streams.name)
    streams.printError(lines.map((line) => `error: ${line}\n`).join(''))
    return exitCode
  }
}

function buildProgram(cli: Cli): Command {
  const program = new Command('cli')
    .description("The operator's command line")
    .option('--no-input', 'never ask: what would have to be asked is refused')
    .exitOverride()
    .configureOutput({ writeOut: cli.print, writeErr: () => {} })
  addShowCommand(program, cli)
  addFollowCommand(program, cli)
  addExportCommand(program, cli)
  addReplayCommand(program, cli)
  addRequeueCommand(program, cli)
  addReconcileCommand(program, cli)
  addSigningCommands(program, cli)
  addKeyCommands(program, cli)
  addPeopleCommands(program, cli)
  addHoldCommands(program, cli)
  addAuditCommand(program, cli)
  addMigrateCommand(program, cli)
  addRestoredCommand(program, cli)
  addDoctorCommand(program, cli)
  addProbeCommand(program, cli)
  return program
}

/** Describes an error, one line each. Option values are never printed: they could be secrets. */
function describe(error: unknown, name: string): { lines: readonly string[]; code: number } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { lines: [], code: EXIT.done }
    if (error.code === 'commander.help') {
      return { lines: [`no command given; see ${name} --help`], code: EXIT.usage }
    }
    const message = error.message
      .replace(/^error: |\.$/g, '')
      .replace('\n(Did you mean', ' (did you mean')
      .replace(/^(unknown option '[^'=]*)=.*$/s, "$1'")
    return { lines: [`${message}; see ${name} --help`], code: EXIT.usage }
  }
  if (error instanceof DomainError || error instanceof MigrationError)
    return { lines: [error.message], code: EXIT.invalid }
  // The command was right, but not for this database.
  if (error === WRONG_KEY) return { lines: WRONG_KEY.lines, code: EXIT.invalid }
  if (error instanceof ConfigError) return { lines: error.lines, code: EXIT.usage }
  if (error instanceof UsageError) return { lines: [error.message], code: EXIT.usage }
  return { lines: [`unexpected error: ${error}`], code: EXIT.failed }
}
