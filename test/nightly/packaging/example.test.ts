import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** A complete run of database, service, sandbox and shop (ms). */
const RUN_WITHIN_MS = 120_000

const STORY = `Starting the IPN processor with its sandbox gateway, and a shop.

1. A customer orders coffee for 250000 VND. Order 1 is pending: the gateway expects the payment
   as <transaction>, and the shop waits until the service confirms it.
2. The customer pays. The gateway notifies the service, which queries the gateway to verify it.
   Order 1 is paid, by payment <payment>.
3. The customer returns a bag: 100000 VND is refunded under the key <key>,
   which the shop stored before it sent the request. The refund succeeded; order 1 is partially_refunded.
4. The customer presses the button again: still 1 return, and nothing more is refunded.
5. A further refund of 200000 VND is refused: 409, at most 150000 can be refunded.
6. The customer returns the rest: what remains is refunded under the key <key>.
   The refund succeeded; order 1 is refunded.
7. Another customer pays 1000 of 250000 VND. The payment succeeded, but order 2 is wrong_amount:
   the shop compares amount and currency before it ships anything.
8. A third customer pays 250000 VND twice. What was paid beyond one success is refunded under the key <key>,
   however often the clerk asks for it. Order 3 is partially_refunded.
9. The service also sends final states to the shop's webhook, signed: the last one reports order 1 as refunded.
`

/** Masks the ids, which differ in every run. */
function hideIds(output: string): string {
  return output
    .replace(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/g, '<key>')
    .replace(/\b\d{12}[A-Z]{6}\b/g, '<transaction>')
    .replace(/(?<=by payment )\d+/g, '<payment>')
}

it(
  'npm run example plays the whole story, exits with 0 and leaves no files behind',
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'example-'))
    await chmod(scratch, 0o755)
    onTestFinished(() => rm(scratch, { recursive: true, force: true }))
    const child = spawn('npm', ['run', '--silent', 'example'], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect(hideIds(printed)).toBe(STORY)
    expect(code).toBe(0)
    const left = await readdir(scratch)
    expect(left.filter((name) => name.startsWith('order-system-'))).toEqual([])
  },
  RUN_WITHIN_MS,
)
