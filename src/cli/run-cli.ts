import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { ConfigError } from '../config/sources.ts'
import { MigrationError } from '../db/migration-error.ts'
import { DomainError } from '../errors.ts'
import { MESSAGE_KINDS } from '../gateway/message-kinds.ts'
import { addAuditCommand } from './audit-command.ts'
import { addHoldCommands } from './hold-commands.ts'
import { addKeyCommands } from './key-commands.ts'
import { addMigrateCommand } from './migrate-command.ts'
import { addPeopleCommands } from './people-commands.ts'
import type { SigningOptions } from './prepare-signing.ts'
import type { Input } from './read-body.ts'
import { signMessage } from './sign-message.ts'
import { UsageError } from './usage-error.ts'
import { verifyMessage } from './verify-message.ts'
import { type RunOnDatabase, withDatabase, withDatabaseUrl } from './with-database.ts'

const EXIT = { done: 0, invalid: 1, usage: 2, failed: 3 }

const HELP = `
The message is read from standard input, as JSON or as a form (a=b&c=d). The secret is SIGNING_SECRET in the
environment, or else that of the configured account that the message names. Secrets are never printed.`

/** What a command reads and writes. */
export type CliStreams = {
  input: Input
  /** The environment variables; this process's own if left out. */
  env?: Readonly<Record<string, string | undefined>>
  /** Data, for standard output. */
  print: (text: string) => void
  /** Messages, for standard error. */
  printError: (text: string) => void
}

/**
 * Runs the operator's command line. Never rejects.
 * @param args what follows the program's name
 * @returns the exit code: 0 success, 1 an invalid hash or a refusal, 2 incorrect usage, 3 an unexpected error
 */
export async function runCli(args: readonly string[], streams: CliStreams): Promise<number> {
  try {
    let code = EXIT.done
    const program = buildProgram(streams, (exitCode) => {
      code = exitCode
    })
    await program.parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    const { lines, code } = describe(error)
    streams.printError(lines.map((line) => `error: ${line}\n`).join(''))
    return code
  }
}

function buildProgram(
  { input, env, print, printError }: CliStreams,
  setExitCode: (code: number) => void,
): Command {
  const program = new Command('cli')
    .description("The operator's command line")
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({ writeOut: print, writeErr: () => {} })
  const given = { input, ...(env ? { env } : {}) }

  addSigningOptions(program.command('sign'))
    .description('show how the hash of a message is computed, and the hash')
    .action(async (options: SigningOptions) => {
      print(await signMessage(given, options))
    })
  addSigningOptions(program.command('verify'))
    .description('check the hash of a message and explain a wrong one; exit code 0 or 1')
    .action(async (options: SigningOptions) => {
      const { valid, text } = await verifyMessage(given, options)
      print(text)
      setExitCode(valid ? EXIT.done : EXIT.invalid)
    })
  const database: RunOnDatabase = (work) => withDatabase(work, env)
  addKeyCommands(program, { print, printError }, database, env)
  addPeopleCommands(program, { print, onDatabase: database, env })
  addHoldCommands(program, print, database)
  addAuditCommand(program, { print, printError, env, onDatabase: database, setExitCode })
  addMigrateCommand(program, {
    print,
    printError,
    onUrl: (work, options) => withDatabaseUrl(work, env, options),
  })
  return program
}

function addSigningOptions(command: Command): Command {
  return command
    .addOption(new Option('--as <kind>', 'the kind of message').choices(MESSAGE_KINDS))
    .option(
      '--exclude <names>',
      'names left out of the hash, separated by commas, or none',
      readNames,
    )
    .option('--prefix <prefix>', 'the prefix of the names, without its underscore', readPrefix)
    .addHelpText('after', HELP)
}

function readNames(text: string): string[] {
  if (text === 'none') return []
  const names = text.split(',')
  if (names.every((name) => /^\w+$/.test(name))) return names
  throw new InvalidArgumentError('Write names separated by commas, or none.')
}

function readPrefix(text: string): string {
  if (/^[A-Za-z][A-Za-z0-9]*$/.test(text)) return text
  throw new InvalidArgumentError('Write letters and digits, without the underscore.')
}

/** Describes an error, one line each. Option values are never printed: they could be secrets. */
function describe(error: unknown): { lines: readonly string[]; code: number } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { lines: [], code: EXIT.done }
    if (error.code === 'commander.help') {
      return { lines: ['no command given; see npm run -s cli -- --help'], code: EXIT.usage }
    }
    const message = error.message
      .replace(/^error: |\.$/g, '')
      .replace(/^(unknown option '[^'=]*)=.*$/s, "$1'")
    return { lines: [`${message}; see npm run -s cli -- --help`], code: EXIT.usage }
  }
  if (error instanceof DomainError || error instanceof MigrationError)
    return { lines: [error.message], code: EXIT.invalid }
  if (error instanceof ConfigError) return { lines: error.lines, code: EXIT.usage }
  if (error instanceof UsageError) return { lines: [error.message], code: EXIT.usage }
  return { lines: [`unexpected error: ${error}`], code: EXIT.failed }
}
