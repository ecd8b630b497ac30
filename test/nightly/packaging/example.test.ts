import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** A complete run of database, service, sandbox and shop (ms). */
const RUN_WITHIN_MS = 120_000

/** Masks the ids, which differ in every run. */
function hideIds(output: string): string {
  return output
    .replace(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/g, '<key>')
    .replace(/\b\d{12}[A-Z]{6}\b/g, '<transaction>')
    .replace(/(?<=by payment )\d+/g, '<payment>')
}

it(
  'npm run example prints what the documentation shows, exits with 0 and leaves no files behind',
  async () => {
    const page = await readFile(join(ROOT, 'docs', 'integrate.md'), 'utf8')
    const [, shown = ''] = /```\n(Starting the IPN processor.*?)```/s.exec(page) ?? []
    const scratch = await mkdtemp(join(tmpdir(), 'example-'))
    await chmod(scratch, 0o755)
    onTestFinished(() => rm(scratch, { recursive: true, force: true }))
    const child = spawn('npm', ['run', '--silent', 'example'], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect(hideIds(printed)).toBe(hideIds(shown))
    expect(code).toBe(0)
    const left = await readdir(scratch)
    expect(left.filter((name) => name.startsWith('order-system-'))).toEqual([])
  },
  RUN_WITHIN_MS,
)
