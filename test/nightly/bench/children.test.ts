import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { readProcess } from '../../support/processes.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Keeps a child that sleeps by SIGSTOP, and a cleanup that prints; then ends as it is told to. */
const PROGRAM = `
  import { spawn } from 'node:child_process'
  import { keepChild, keepCleanup, stopOnExit } from '${new URL('../../bench/processes.ts', import.meta.url).href}'
  stopOnExit()
  const child = keepChild(spawn('sleep', ['600']))
  child.kill('SIGSTOP')
  keepCleanup(() => console.log('stopped Postgres'))
  keepCleanup(() => console.log('never'))()
  console.log(child.pid)
  process.stdin.once('data', () => { throw new Error('a part failed') })`

it.each(['SIGTERM', 'SIGINT', 'an error'] as const)(
  'a bench that ends by %s leaves no process and no server behind',
  async (how) => {
    const args = ['--import', 'tsx', '--input-type=module', '-e', PROGRAM]
    const bench = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] })
    const lines: string[] = []
    createInterface({ input: bench.stdout }).on('line', (line) => lines.push(line))
    await waitUntil(() => lines.length > 0, { what: 'the child runs' })
    const child = Number(lines[0])
    expect(readProcess(child)).toBeDefined()
    const closed = once(bench, 'close')
    if (how === 'an error') bench.stdin.write('\n')
    else bench.kill(how)
    const [code] = await closed
    expect(code).toBe({ SIGTERM: 143, SIGINT: 130, 'an error': 1 }[how])
    expect(lines.slice(1)).toEqual(['stopped Postgres'])
    await waitUntil(() => readProcess(child) === undefined, { what: 'the child is gone' })
  },
)
