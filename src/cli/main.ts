import { relative } from 'node:path'
import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import { runCli } from './run.ts'

// The command that waits for the connection reports its loss.
tolerateLostConnections()

const [, script = '', ...args] = process.argv

process.exitCode = await runCli(args, {
  // From the sources it runs as a script of npm, else compiled.
  name: script.endsWith('.ts')
    ? 'npm run -s cli --'
    : `node ${relative(process.cwd(), script) || script}`,
  env: undefined,
  input: process.stdin,
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
