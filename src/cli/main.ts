import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import { CLI } from '../version.ts'
import { runCli } from './run.ts'

// The command that waits for the connection reports its loss.
tolerateLostConnections()

process.exitCode = await runCli(process.argv.slice(2), {
  name: CLI,
  env: undefined,
  input: process.stdin,
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
