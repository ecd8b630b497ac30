#!/usr/bin/env node
import { once } from 'node:events'
import { tolerateLostConnections } from '../platform/postgres/pool.ts'
import { CLI } from '../version.ts'
import { runCli } from './run.ts'

// The command that waits for a lost connection gets an error, and reports it.
tolerateLostConnections()

// The reader of a pipe may stop early, as `head` does.
process.stdout.on('error', ({ message, code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit()
  process.stderr.write(`error: standard output: ${message}\n`)
  process.exit(1)
})

process.exitCode = await runCli(process.argv.slice(2), {
  name: CLI,
  env: undefined,
  input: process.stdin,
  print: (text) => process.stdout.write(text) || once(process.stdout, 'drain'),
  printError: (text) => void process.stderr.write(text),
  // `hasColors` is false with NO_COLOR, and where TERM names a terminal that cannot redraw a line.
  isTerminal: process.stderr.isTTY && process.stderr.hasColors(),
})
