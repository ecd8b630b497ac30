import { explainError } from '../cli/explain.ts'
import type { Environment } from '../config/settings.ts'
import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import { formatVersion } from '../version.ts'

type MainStreams = {
  /** The environment variables, by default those of this process. */
  env?: Environment
  print: (text: string) => void
  printError: (text: string) => void
}

/**
 * Never rejects.
 * @returns the exit code: 0 done, 1 the start or a check failed, 2 wrong usage; undefined if the service runs
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
        // The check that waits for the connection reports that it was lost.
        tolerateLostConnections()
        const { presentFinding, runCheck } = await import('../cli/check.ts')
        const result = await runCheck(env, {
          onFinding: (finding) => command.json || print(presentFinding(finding)),
        })
        if (command.json) print(`${JSON.stringify(result, null, 2)}\n`)
        return result.ok ? 0 : 1
      }
      case 'serve': {
        // This comes first: loading the service takes most of a second, and it may be stopped meanwhile.
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

/**
 * Handles the signals that stop a process; without a handler they end it as if it had crashed. Until a stop is
 * attached, nothing runs that has to be stopped, and a signal exits with 0.
 */
function catchSignals(): (stop: (signal: NodeJS.Signals) => void) => void {
  let stop: (signal: NodeJS.Signals) => void = () => process.exit(0)
  // Not `once`: Ctrl-C under npm arrives twice, and the second signal must not abort the stop.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => stop(signal))
  return (attached) => {
    stop = attached
  }
}

export type Command =
  | { action: 'serve' | 'version' | 'help' }
  | { action: 'check'; json: boolean }
  | { action: 'refuse'; reason: string }

const ACTIONS = ['check', 'version', 'help'] as const
const KNOWN: readonly string[] = [...ACTIONS, 'json'].map((name) => `--${name}`)

const HELP = `Usage: node dist/main.js [--check [--json] | --version | --help]

Without an argument the service starts, with the settings of the environment (docs/reference.md).

  --check     check the settings, the database, its schema, the encryption key, the gateway's TLS
              and the clock, and serve nothing; exit code 0, or 1 when a check failed
  --json      with --check: print the result as JSON
  --version   print the version
  --help      print this help
`

export function readArguments(args: readonly string[]): Command {
  for (const arg of args) {
    const [name = ''] = arg.split('=')
    if (KNOWN.includes(arg)) continue
    if (KNOWN.includes(name)) return refuse(`${name} takes no value`)
    // The value of an option may be a secret.
    const shown = arg.startsWith('-') ? name : arg
    return refuse(`unknown argument ${JSON.stringify(shown.slice(0, 100))}`)
  }
  const [action, other] = ACTIONS.filter((name) => args.includes(`--${name}`))
  if (action && other) return refuse(`--${action} cannot be combined with --${other}`)
  const json = args.includes('--json')
  if (json && action !== 'check') return refuse('--json needs --check')
  if (action === 'check') return { action, json }
  return { action: action ?? 'serve' }
}

function refuse(problem: string): Command {
  return { action: 'refuse', reason: `${problem}; see --help` }
}
