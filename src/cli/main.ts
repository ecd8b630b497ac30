import { tolerateLostConnections } from '../platform/postgres/lost-connections.ts'
import { runCli } from './run-cli.ts'

// The command that waits for the connection reports its loss.
tolerateLostConnections()

process.exitCode = await runCli(process.argv.slice(2), {
  input: process.stdin,
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
