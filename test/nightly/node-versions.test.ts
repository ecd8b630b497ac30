import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type InstalledNode, installNode } from '../../ops/install-node.ts'
import { linkPackage } from '../support/bundle.ts'
import { waitUntil } from '../support/wait-until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
/** A download, a compiler run, a start with a new database on a busy machine (ms). */
const DONE_WITHIN_MS = 180_000
const API_KEY = 'the-key-of-the-drill-of-node-versions'

/** A shop: a payment is notified, waited for, refunded, and the events are read from the stream. */
const SHOP = `
import { createClient } from './client-dist/index.js'
const [baseUrl, apiKey, sandboxUrl] = process.argv.slice(2)
const ipn = createClient({ baseUrl, apiKey })
const response = await fetch(sandboxUrl + '/sandbox/transactions', {
  method: 'POST',
  body: '{"payments":[{"amount":"150000","paymentMethod":"CC","status":"SUCCESS"}]}',
})
const { transactionId } = await response.json()
const { state, ipnCount, payments } = await ipn.transactions.wait(transactionId, { untilKnown: true })
const { id } = await ipn.refunds.create(payments[0].id, { amount: '40000', reason: 'returned' })
const { status } = await ipn.refunds.wait(id)
for await (const event of ipn.events.follow()) {
  if (event.type !== 'refund.updated' || event.data.status !== 'succeeded') continue
  console.log(process.version, state, ipnCount, status, event.data.amount)
  break
}
`

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'node-versions-'))
  // Started as root, the database runs as another user, who needs access to its files.
  await chmod(folder, 0o755)
  linkPackage(folder)
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  for (const [project, output] of [
    ['tsconfig.build.json', 'dist'],
    ['client', 'client-dist'],
  ] as const) {
    const to = join(folder, output)
    await run(process.execPath, [tsc, '-p', join(ROOT, project), '--outDir', to])
  }
  await writeFile(join(folder, 'shop.js'), SHOP)
}, DONE_WITHIN_MS)
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))

/** Starts the compiled service in demo mode; `stop` returns its exit code. */
async function startDemo({ executable, version }: InstalledNode) {
  const child = spawn(executable, ['dist/main.js'], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      DEMO: 'true',
      PORT: '0',
      SANDBOX_PORT: '0',
      DATA_DIR: join(folder, `data-${version}`),
      LOG_LEVEL: 'error',
      API_KEY,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await ended
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text
  })
  const isReady = () => printed.includes('Stop with Ctrl-C.') || child.exitCode !== null
  await waitUntil(isReady, { what: 'the banner', timeoutMs: 60_000 })
  const [, url = ''] = /^Service +(\S+)/m.exec(printed) ?? []
  const [, sandboxUrl = ''] = /^Sandbox +(\S+)/m.exec(printed) ?? []
  async function stop(): Promise<unknown> {
    child.kill('SIGTERM')
    const [code] = await ended
    return code
  }
  return { url, sandboxUrl, stop }
}

describe.each(['22', '24'])('on Node %s', { timeout: DONE_WITHIN_MS }, (line) => {
  let installed: InstalledNode
  beforeAll(async () => {
    installed = await installNode(line)
  }, DONE_WITHIN_MS)

  it('the compiled demo acknowledges a notification, the client refunds the payment, and the service stops', async () => {
    const { executable, version } = installed
    expect(version.startsWith(`v${line}.`)).toBe(true)
    const { url, sandboxUrl, stop } = await startDemo(installed)
    const { stdout } = await run(executable, ['shop.js', url, API_KEY, sandboxUrl], { cwd: folder })
    expect(stdout).toBe(`${version} paid 1 succeeded 40000\n`)
    expect(await stop()).toBe(0)
  })
})
