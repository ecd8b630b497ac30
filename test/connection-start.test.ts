import { expect, it, onTestFinished } from 'vitest'
import { withKey } from './support/api.ts'
import { createTestDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { settingsFor, startServiceProcess } from './support/process.ts'
import { waitUntil } from './support/wait-until.ts'

it('a connection cut off while it is made, where the driver rejects what nobody can catch, ends no process', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const proxy = await startDatabaseProxy(database.url)
  onTestFinished(() => proxy.stop())
  const service = await startServiceProcess(settingsFor(proxy.url(), 'http://127.0.0.1:9'))
  const read = async () => (await fetch(`${service.url}/v1/transactions/NONE`, withKey())).status

  // The driver's first question of a session is for the types of arrays.
  proxy.alter = (answer) => {
    if (answer.includes('typarray')) proxy.cut()
    return answer
  }
  proxy.cut()
  const isSaid = async () => {
    await read()
    return service.output().out.includes('lost while it was made')
  }
  await waitUntil(isSaid, { what: 'a connection that is cut off at its start' })
  proxy.alter = (answer) => answer
  await waitUntil(async () => (await read()) === 404, { what: 'the database is back' })
  expect(service.child.exitCode).toBeNull()
})
