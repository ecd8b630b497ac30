import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { replaceDemoKey } from '../../../src/demo.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
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
