import { runMain } from './start/run.ts'

// A reader such as `head` may close the pipe early. The check runs to its end, as its exit code matters.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

const code = await runMain(process.argv.slice(2), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
})
if (code !== undefined) process.exit(code)
