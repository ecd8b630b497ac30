import { runCli } from './run-cli.ts'

process.exitCode = await runCli(process.argv.slice(2), {
  input: process.stdin,
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
