import { once } from 'node:events'
import { createServer } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { explainError } from '../../../src/cli/explain.ts'
import { type Binding, listen } from '../../../src/http/server.ts'
import { startTestService } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Returns a port that another program uses. */
async function takePort(): Promise<number> {
  const other = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void other.close())
  await once(other, 'listening')
  const address = other.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** Listens there, which fails, and returns what the start says of it. */
async function failAt(binding: Binding): Promise<string> {
  return explainError(await listen(createServer(), binding).catch((error: unknown) => error))
}

const database = useTestDatabase()

const settings = { host: 'METRICS_HOST', port: 'METRICS_PORT' }

it('a port in use is named with its setting', async () => {
  const port = await takePort()
  expect(await failAt({ host: 'localhost', port, settings })).toBe(
    `METRICS_PORT: cannot listen on localhost:${port} (another program does); set another METRICS_PORT or METRICS_HOST`,
  )
})

it('an address of another machine gives a line that names its setting', async () => {
  // Reserved for documentation (RFC 5737): no machine has it.
  expect(await failAt({ host: '192.0.2.1', port: 0, settings })).toMatch(
    /^METRICS_PORT: cannot listen on 192\.0\.2\.1:0 \(no address of this machine\); set another /,
  )
})

it('a start that fails on its port claims nothing and leaves no connection open', async () => {
  const { sql } = database
  const countSessions = async () =>
    (await sql`select from pg_stat_activity where datname = current_database()`).length
  await sql`
    insert into transactions (merchant_code, transaction_id, due_at) values ('UFLIYL', 'T-1', now())`
  const before = await countSessions()
  const PORT = String(await takePort())
  await expect(
    startTestService(database, 'http://127.0.0.1:9', { settings: { PORT } }),
  ).rejects.toThrow('another program does')
  expect(await sql`select claimed, lease_id from transactions`).toEqual([
    { claimed: 0, lease_id: null },
  ])
  await waitUntil(async () => (await countSessions()) <= before, { what: 'its sessions end' })
})
