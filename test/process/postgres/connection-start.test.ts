import { expect, it, onTestFinished } from 'vitest'
import { withKey } from '../../support/api.ts'
import { borrowDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { settingsFor, startServiceProcess } from '../../support/process.ts'
import { waitUntil } from '../../support/wait-until.ts'

// The driver rejects a promise that no caller can catch if it is cut off while it reads the array types.
it('a connection cut off while it is opened, at whichever answer, does not end the process', async () => {
  const database = await borrowDatabase()
  onTestFinished(() => database.release())
  const proxy = await startDatabaseProxy(database.url)
  onTestFinished(() => proxy.stop())
  const service = await startServiceProcess({
    ...settingsFor(proxy.url(), 'http://127.0.0.1:9'),
    LOG_LEVEL: 'debug',
  })
  const read = async () => (await fetch(`${service.url}/v1/transactions/NONE`, withKey())).status

  for (const nth of [1, 2, 3, 4, 5]) {
    let cuts = 0
    const answers = new WeakMap<object, number>()
    proxy.alter = (answer, client) => {
      const count = (answers.get(client) ?? 0) + 1
      answers.set(client, count)
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
  expect(service.output().out).toContain('"work":"connections"')
  expect(service.child.exitCode).toBeNull()
})
