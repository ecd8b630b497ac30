import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { ConfigError } from '../config.ts'
import { KINDS } from '../gateway/kinds.ts'
import { addAuditCommand } from './audit.ts'
import { addKeyCommands } from './keys.ts'
import type { Options } from './prepare.ts'
import { sign } from './sign.ts'
import { UsageError } from './usage-error.ts'
import { verify } from './verify.ts'

const EXIT = { done: 0, invalid: 1, usage: 2, failed: 3 }

const HELP = `
The message comes on standard input, as JSON or as a form (a=b&c=d); the secret from SIGNING_SECRET
in the environment, or else from the configured account that the message names. No secret is printed.`

function buildProgram(): Command {
  const program = new Command('cli')
    .description("The operator's command line")
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({ writeErr: () => {} })
  const around = { input: process.stdin }

  addSigningOptions(program.command('sign'))
    .description('show how the hash of a message comes about, and the hash')
    .action(async (options: Options) => {
      process.stdout.write(await sign(around, options))
    })
  addSigningOptions(program.command('verify'))
    .description('check the hash of a message, and explain a wrong one; exit code 0 or 1')
    .action(async (options: Options) => {
      const { valid, text } = await verify(around, options)
      process.stdout.write(text)
      process.exitCode = valid ? EXIT.done : EXIT.invalid
    })
  const print = (text: string) => void process.stdout.write(text)
  addKeyCommands(program, print)
  addAuditCommand(program, print)
  return program
}

function addSigningOptions(command: Command): Command {
  return command
    .addOption(new Option('--as <kind>', 'what the message is').choices(KINDS))
    .option(
      '--exclude <names>',
      'names left out of the hash, joined by commas; none for none',
      readNames,
    )
    .option('--prefix <prefix>', "the names' prefix, without its underscore", readPrefix)
    .addHelpText('after', HELP)
}

function readNames(text: string): string[] {
  if (text === 'none') return []
  const names = text.split(',')
  if (names.every((name) => /^\w+$/.test(name))) return names
  throw new InvalidArgumentError('Write names joined by commas, or none.')
}

function readPrefix(text: string): string {
  if (/^[A-Za-z][A-Za-z0-9]*$/.test(text)) return text
  throw new InvalidArgumentError('Write letters and digits, without the underscore.')
}

/** One line a mistake; an option's value could be a secret and is never repeated. */
function describe(error: unknown): { lines: readonly string[]; code: number } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { lines: [], code: EXIT.done }
    if (error.code === 'commander.help') {
      return { lines: ['no command; see npm run -s cli -- --help'], code: EXIT.usage }
    }
    const what = error.message
      .replace(/^error: |\.$/g, '')
      .replace(/^(unknown option '[^'=]*)=.*$/s, "$1'")
    return { lines: [`${what}; see npm run -s cli -- --help`], code: EXIT.usage }
  }
  if (error instanceof ConfigError) return { lines: error.lines, code: EXIT.usage }
  if (error instanceof UsageError) return { lines: [error.message], code: EXIT.usage }
  return { lines: [`unexpected: ${error}`], code: EXIT.failed }
}

try {
  await buildProgram().parseAsync()
} catch (error) {
  const { lines, code } = describe(error)
  process.stderr.write(lines.map((line) => `error: ${line}\n`).join(''))
  process.exitCode = code
}
