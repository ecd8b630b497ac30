import type { Environment } from '../config/settings.ts'
import { tolerateLostConnections } from '../platform/postgres/lost-connections.ts'
import { formatVersion } from '../version.ts'
import { explainError } from './explain-error.ts'
import { HELP, readArguments } from './read-arguments.ts'
import { catchSignals } from './signals.ts'

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
        const { runCheck } = await import('./check.ts')
        const { presentCheck } = await import('./check.ts')
        const result = await runCheck(env)
        print(presentCheck(result, command.json))
        return result.ok ? 0 : 1
      }
      case 'serve': {
        // First: loading the service takes most of a second, and it may be stopped meanwhile.
        const handle = catchSignals()
        const { serve } = await import('./serve.ts')
        await serve(handle, env)
        return undefined
      }
    }
  } catch (error) {
    printError(`${explainError(error)}\n`)
    return 1
  }
}
