import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import { withKey } from '../../support/api.ts'
import { startClosingServer } from '../../support/closing-server.ts'
import { holdLocks } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { runMain, settingsFor, startServiceProcess } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useTestDatabase()

// The driver rejects a promise that no caller can catch if it is cut off while it reads the array types.
it('a connection cut off while it is opened, at whichever answer, does not end the process', async () => {
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

it('a connection that the server is too slow to open does not end the process', async () => {
  const service = await startServiceProcess({
    ...settingsFor(database.url, 'http://127.0.0.1:9'),
    LOG_LEVEL: 'debug',
  })
  const read = async () => (await fetch(`${service.url}/v1/transactions`, withKey())).status
  expect(await read()).toBe(200)
  // The driver asks for the types of arrays before anything else.
  const lock = await holdLocks(database, async (tx) => {
    await tx`lock table pg_catalog.pg_type in access exclusive mode`
    await tx`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'ipn-processor'`
  })
  const isTooSlow = async () => {
    await read().catch(() => undefined)
    return service.child.exitCode ?? service.output().out.includes('57014')
  }
  await expect.poll(isTooSlow, { timeout: 20_000 }).toBe(true)
  await lock.release()
  await expect.poll(() => read().catch(() => undefined), { timeout: 20_000 }).toBe(200)
  expect(service.child.exitCode).toBeNull()
})

const startWith = (databaseUrl: string) => runMain(settingsFor(databaseUrl, 'http://127.0.0.1:9'))
const startAt = (port: number) => startWith(`postgres://u:hunter2@127.0.0.1:${port}/x`)

it('a start at a proxy without a database behind it connects once, says why, and ends', async () => {
  const closing = await startClosingServer()
  const { ended, output } = startAt(closing.port)
  expect(await ended).toBe(1)
  expect(output().err).toMatch(
    /^The database at DATABASE_URL is unreachable \(CONNECTION_CLOSED\): .* proxy or pooler .*\n$/,
  )
  expect(closing.countConnections()).toBe(1)
})

it.each([
  [
    'whose connections are taken',
    'connection limit 0',
    /^The database at DATABASE_URL has no connection left \(53300\): .+\n$/,
  ],
  [
    'that may not read the schema',
    '',
    /^The user of DATABASE_URL may not do what the start needs \(42501, .+\): .+\n$/,
  ],
])('a start with a role %s says so in one line, and ends', async (_, limit, expected) => {
  const role = `limited_${randomUUID().replaceAll('-', '')}`
  await database.sql.unsafe(`create role ${role} login password 'x' ${limit}`)
  onTestFinished(async () => {
    await database.sql.unsafe(`drop role ${role}`)
  })
  const url = new URL(database.url)
  url.username = role
  url.password = 'x'
  const { ended, output } = startWith(url.href)
  expect(await ended).toBe(1)
  expect(output().err).toMatch(expected)
})
