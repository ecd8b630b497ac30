import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, inject, it, onTestFinished } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { ask } from '../support/postgres-server.ts'
import { MERCHANT, startRig } from '../support/service.ts'

const ROWS = Number(process.env.EXPORT_ROWS ?? 1_000_000)

/** In a session of its own: those of the service end a statement that takes so long. */
async function fill(database: { url: string }): Promise<void> {
  const url = new URL(inject('serverUrl'))
  url.pathname = new URL(database.url).pathname
  const numbers = `generate_series(1, ${ROWS}) as i, lateral (select lpad(i::text, 7, '0') as n) as l`
  const account = `'${MERCHANT.merchantCode}'`
  await ask(
    url.href,
    `insert into transactions (merchant_code, transaction_id, order_id, currency, state, first_seen_at, ipn_count)
    select ${account}, 'T-' || n, 'O-' || n, 'VND', 'paid', now() - i * interval '1 s', 1 from ${numbers};
    insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
      refunded_at_first, payment_method, as_of, first_seen_at)
    select now(), ${account}, 'P-' || n, 'T-' || n, 'SUCCESS', i, 0, 0, 'CC', now(),
      now() - i * interval '1 s' from ${numbers};
    analyze`,
  )
}

/** Runs the export as a process, until it ends or `isCut`. Returns its exit code and its memory over time (MB). */
async function runExport(file: string, url: string, isCut = () => false) {
  const args = [inject('programs').cli, 'export', 'payments', '--output', file]
  const child = spawn(process.execPath, args, { env: { DATABASE_URL: url }, stdio: 'ignore' })
  const ended = once(child, 'exit')
  const memory: number[] = []
  while (child.exitCode === null && child.signalCode === null) {
    await pause(100)
    const [, kB] = /VmRSS:\s+(\d+)/.exec(readStatus(child.pid)) ?? []
    if (kB !== undefined) memory.push(Number(kB) / 1024)
    if (isCut()) child.kill('SIGKILL')
  }
  await ended
  return { code: child.exitCode, memory }
}

function readStatus(pid = 0): string {
  const file = `/proc/${pid}/status`
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** The pages of the API, as one file has them. */
async function hashPages(read: (path: string) => Promise<Response>): Promise<[string, number]> {
  const hash = createHash('sha256')
  let rows = 0
  let path: string | undefined = '/v1/payments?limit=200'
  for (let isFirst = true; path !== undefined; isFirst = false) {
    const response: Response = await read(path)
    expect(response.status).toBe(200)
    const text = await response.text()
    const body = text.slice(text.indexOf('\r\n') + 2)
    rows += body.split('\r\n').length - 1
    hash.update(isFirst ? text : body)
    path = /^<([^>]+)>/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return [hash.digest('hex'), rows]
}

async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of createReadStream(file)) hash.update(bytes)
  return hash.digest('hex')
}

it.skipIf(process.platform !== 'linux')(
  'a million rows are exported in the memory of a few, as the API lists them, also when it is killed halfway',
  async () => {
    const database = await createTestDatabase()
    onTestFinished(() => database.drop())
    await fill(database)
    const rig = await startRig({ database, settings: { ROLE: 'web' } })
    onTestFinished(() => rig.stop())
    await database.sql`update actors set rate_per_minute = 100000000`
    const folder = mkdtempSync(join(tmpdir(), 'ipn-export-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'payments.csv')
    const HALF = ROWS * 60
    const began = performance.now()
    const cut = await runExport(
      file,
      database.url,
      () => existsSync(file) && statSync(file).size > HALF,
    )
    expect(cut.code).toBeNull()
    const { code, memory } = await runExport(file, database.url)
    const seconds = (performance.now() - began) / 1_000
    expect(code).toBe(0)
    const [wanted, rows] = await hashPages((path) =>
      rig.api(path, { headers: { accept: 'text/csv' } }),
    )
    expect([await hashFile(file), rows]).toEqual([wanted, ROWS])
    const quarters = [0, 1, 2, 3].map((n) => {
      const part = memory.slice((n * memory.length) / 4, ((n + 1) * memory.length) / 4)
      return Math.max(...part)
    })
    console.info(
      `${ROWS} rows, ${(statSync(file).size / 1e6).toFixed(0)} MB, in ${seconds.toFixed(0)} s, killed at ${(HALF / 1e6).toFixed(0)} MB; MB of memory, the most of each quarter: ${quarters.map((mb) => mb.toFixed(0)).join(', ')}`,
    )
    // The first quarter has the start.
    expect(quarters[3]).toBeLessThan(1.25 * (quarters[1] ?? 0))
  },
  1_800_000,
)
