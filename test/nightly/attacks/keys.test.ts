import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { replaceDemoKey } from '../../../src/demo.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { addKey } from '../../support/service.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

const settings = () => ({ ...settingsFor(database.url, 'http://127.0.0.1:9'), ROLE: 'web' })

async function readWith(url: string, key: string, path = '/v1/payments'): Promise<number> {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })
  await response.body?.cancel()
  return response.status
}

it('neither the key of a demo nor the API_KEY before opens anything in production', async () => {
  const [demo, old, next] = [randomUUID(), `old-${randomUUID()}`, `new-${randomUUID()}`]
  await replaceDemoKey(database.sql, demo)
  const before = await startServiceProcess({ ...settings(), API_KEY: old })
  expect([await readWith(before.url, demo), await readWith(before.url, old)]).toEqual([401, 200])
  const after = await startServiceProcess({ ...settings(), API_KEY: next, API_KEY_GRACE_MS: '0' })
  for (const { url } of [before, after]) {
    // A process may have cached the key for a second.
    await waitUntil(async () => (await readWith(url, old)) === 401, { what: 'the end of the key' })
    expect([await readWith(url, demo), await readWith(url, next)]).toEqual([401, 200])
  }
  expect(after.output().out).toContain('API_KEY has changed')
})

/** Played in some 8 s: a refusal is held back for 200 ms, and both processes must see the same minute. */
const REQUESTS = 1_000

it('one key cannot make more requests a minute over two processes than over one', async () => {
  const key = randomUUID()
  await addKey(database, key, ['payments:read'])
  await database.sql`
    update actors set rate_per_minute = 600 where hash = sha256(${key}::bytea)`
  const urls = [await startServiceProcess(settings()), await startServiceProcess(settings())].map(
    ({ url }) => url,
  )
  await waitUntil(
    async () => {
      const [row] = await database.sql<
        { s: number }[]
      >`select extract(second from now())::float8 as s`
      return (row?.s ?? 60) < 40
    },
    { what: 'the start of a minute', timeoutMs: 40_000, everyMs: 200 },
  )
  const statuses = new Map<number, number>()
  let left = REQUESTS
  const read = async (url: string) => {
    while (left > 0) {
      left -= 1
      const status = await readWith(url, key, '/v1/transactions/T-1')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(urls.flatMap((url) => Array.from({ length: 8 }, () => read(url))))
  console.info(
    `${REQUESTS} requests with a rate of 600 over two processes: ${JSON.stringify([...statuses])}`,
  )
  // What one process has reserved and not used stays with it: a twentieth at most.
  expect(statuses.get(404)).toBeLessThanOrEqual(600)
  expect(statuses.get(404)).toBeGreaterThanOrEqual(570)
  expect(statuses.get(429)).toBe(REQUESTS - (statuses.get(404) ?? 0))
}, 120_000)
