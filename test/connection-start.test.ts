import { expect, it, onTestFinished } from 'vitest'
import { withKey } from './support/api.ts'
import { createTestDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { settingsFor, startServiceProcess } from './support/process.ts'
import { waitUntil } from './support/wait-until.ts'

// Cut off while it asks for the types of arrays, the driver rejects what nobody can catch.
it('a connection cut off while it is made, at whichever answer, ends no process', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const proxy = await startDatabaseProxy(database.url)
  onTestFinished(() => proxy.stop())
  const service = await startServiceProcess(settingsFor(proxy.url(), 'http://127.0.0.1:9'))
  const read = async () => (await fetch(`${service.url}/v1/transactions/NONE`, withKey())).status

  for (const nth of [1, 2, 3, 4, 5]) {
    let cuts = 0
    const heard = new WeakMap<object, number>()
    proxy.alter = (answer, client) => {
      const count = (heard.get(client) ?? 0) + 1
      heard.set(client, count)
      if (count === nth) {
        cuts += 1
        client.resetAndDestroy()
      }
      return answer
    }
    proxy.cut()
    const isCut = async () => {
      await read()
      return cuts >= 10
    }
    await waitUntil(isCut, { what: `connections cut off at their answer ${nth}` })
    proxy.alter = (answer) => answer
    await waitUntil(async () => (await read()) === 404, { what: 'the database is back' })
  }
  expect(service.output().out).toContain('lost while it was made')
  expect(service.child.exitCode).toBeNull()
})
