import { runMain } from './start/run.ts'

const code = await runMain(process.argv.slice(2), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
if (code !== undefined) process.exit(code)
