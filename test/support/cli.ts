import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { z } from 'zod'
import { runCli as run } from '../../src/cli/run.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What `doctor` and `probe` report. */
export const Report = z.object({
  ok: z.boolean(),
  findings: z.array(
    z.object({
      id: z.string(),
      severity: z.enum(['info', 'warning', 'error']),
      finding: z.string(),
      action: z.string().nullable(),
    }),
  ),
})

/** Standard error apart: what is said to people, and the lines of audit entries. */
export type CliResult = { code: number | null; out: string; err: string; entries: string[] }

function splitError(text: string): Pick<CliResult, 'err' | 'entries'> {
  const lines = text.split(/(?<=\n)/)
  const isEntry = (line: string) => line.startsWith('{') && line.includes('"msg":"audit entry"')
  return {
    err: lines.filter((line) => !isEntry(line)).join(''),
    entries: lines.filter(isEntry),
  }
}

/** Runs a command of the command line in this process, with only the given environment. */
export async function runCli(
  args: readonly string[],
  env: Record<string, string>,
  body = '',
): Promise<CliResult> {
  let out = ''
  let err = ''
  const code = await run(args, {
    name: 'npm run -s cli --',
    input: Readable.from([Buffer.from(body)]),
    env,
    print: (text) => {
      out += text
    },
    printError: (text) => {
      err += text
    },
  })
  return { code, out, ...splitError(err) }
}

/** Runs a command in a process of its own, with only the given environment. */
export async function spawnCli(
  args: readonly string[],
  env: Record<string, string>,
  body = '',
): Promise<CliResult> {
  const child = spawn(process.execPath, [inject('programs').cli, ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', ...env },
  })
  const ended = once(child, 'close')
  child.stdin.on('error', () => {})
  child.stdin.end(body)
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  await ended
  return { code: child.exitCode, out, ...splitError(err) }
}
