import { runMain } from './start/run.ts'

// Whoever reads may have read enough, as `head` has. The exit code is that of the whole check.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

const code = await runMain(process.argv.slice(2), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
if (code !== undefined) process.exit(code)
