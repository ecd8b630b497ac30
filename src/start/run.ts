import { parseArgs } from 'node:util'
import type { Environment } from '../config/settings.ts'
import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import { formatVersion } from '../version.ts'
import type { Finding } from './check-database.ts'
import { explainError } from './explain-error.ts'
import { catchSignals } from './stop.ts'

/** What the program reads and writes besides the log. */
export type MainStreams = {
  /** The environment variables; this process's own if left out. */
  env?: Environment
  /** Data, for standard output. */
  print: (text: string) => void
  /** Messages, for standard error. */
  printError: (text: string) => void
}

/**
 * Runs the program. Never rejects.
 * @param args what follows the program's name
 * @returns the exit code: 0 done, 1 the start or a check failed, 2 wrong usage; undefined while the service runs
 */
export async function runMain(
  args: readonly string[],
  { env, print, printError }: MainStreams,
): Promise<number | undefined> {
  const command = readArguments(args)
  try {
    switch (command.action) {
      case 'refuse':
        printError(`${command.reason}\n`)
        return 2
      case 'help':
        print(HELP)
        return 0
      case 'version':
        print(`${formatVersion()}\n`)
        return 0
      case 'check': {
        // The check that waits for the connection reports its loss.
        tolerateLostConnections()
        const { presentFinding, runCheck } = await import('./check.ts')
        const onFinding = (finding: Finding) => print(presentFinding(finding))
        const result = await runCheck(env, command.json ? {} : { onFinding })
        if (command.json) print(`${JSON.stringify(result, null, 2)}\n`)
        return result.ok ? 0 : 1
      }
      case 'serve': {
        // First: loading the service takes most of a second, and it may be stopped meanwhile.
        const onSignal = catchSignals()
        const { start } = await import('./start.ts')
        await start(onSignal, env)
        return undefined
      }
    }
  } catch (error) {
    printError(`${explainError(error)}\n`)
    return 1
  }
}

/** What the command line asks for; `refuse` names the argument that is not known. */
export type Command =
  | { action: 'serve' | 'version' | 'help' }
  | { action: 'check'; json: boolean }
  | { action: 'refuse'; reason: string }

const ACTIONS = ['check', 'version', 'help'] as const

export const HELP = `Usage: node dist/main.js [--check [--json] | --version | --help]

Without an argument the service starts, with the settings of the environment (docs/settings.md).

  --check     check the settings, the database, its schema, the encryption key, the gateway's TLS
              and the clock, and serve nothing; exit code 0, or 1 when a check failed
  --json      with --check: print the result as JSON
  --version   print the version
  --help      print this help
`

/** Reads the arguments of the program. */
export function readArguments(args: readonly string[]): Command {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      check: { type: 'boolean' },
      json: { type: 'boolean' },
      version: { type: 'boolean' },
      help: { type: 'boolean' },
    },
    // Strict parsing names an unknown argument in a paragraph about positional arguments.
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const names = new Set<string>()
  for (const token of tokens) {
    if (token.kind === 'positional') return refuse(`unknown argument ${quote(token.value)}`)
    if (token.kind === 'option-terminator') return refuse('unknown argument "--"')
    const isKnown =
      token.rawName === '--json' || ACTIONS.some((name) => `--${name}` === token.rawName)
    if (!isKnown) return refuse(`unknown argument ${quote(token.rawName)}`)
    if (token.value !== undefined) return refuse(`${token.rawName} takes no value`)
    names.add(token.name)
  }
  const [action, other] = ACTIONS.filter((name) => names.has(name))
  if (action && other) return refuse(`--${action} cannot be combined with --${other}`)
  const json = names.has('json')
  if (json && action !== 'check') return refuse('--json needs --check')
  if (action === 'check') return { action, json }
  return { action: action ?? 'serve' }
}

function refuse(problem: string): Command {
  return { action: 'refuse', reason: `${problem}; see --help` }
}

/** Quotes an argument on one line, truncated. */
function quote(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}
