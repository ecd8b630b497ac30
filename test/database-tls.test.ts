import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { isDatabaseAway, openDatabase } from '../src/db/client.ts'
import { migrateDatabase } from '../src/db/migrate.ts'
import { type DriverOptions, describeLine } from '../src/db/socket.ts'
import { makeAuthority } from './support/certificates.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { pickPort, runMain, settingsFor } from './support/process.ts'
import { waitUntil } from './support/wait-until.ts'

const authority = makeAuthority()
const RIGHT = authority.issue('127.0.0.1')
const WRONG = authority.issue('database.example')

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

async function startProxy(identity?: typeof RIGHT) {
  const proxy = await startDatabaseProxy(database.url, identity)
  onTestFinished(() => proxy.stop())
  return proxy
}

/** A pool of one connection: a place that is lost is missed. */
function open(url: string) {
  const pool = openDatabase(url, 1)
  onTestFinished(() => pool.close())
  return pool
}

const failing = (work: PromiseLike<unknown>) =>
  Promise.resolve(work).then(
    () => expect.unreachable('it was answered'),
    (error: unknown) => error,
  )

it.each(['require', 'prefer', 'allow'])(
  'sslmode=%s speaks TLS with a server that has it, and nothing goes out in the clear',
  async (sslmode) => {
    const proxy = await startProxy(RIGHT)
    const { sql } = open(proxy.url(sslmode))
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
    expect(proxy.seen).toMatchObject({ asked: 1, clear: '' })
    expect(proxy.seen.inside).toContain('select 1 as n')
  },
)

it('sslmode=prefer goes on in the clear with a server that has no TLS, and disable does not ask', async () => {
  const proxy = await startProxy()
  for (const [sslmode, asked] of [
    ['prefer', 1],
    ['disable', 1],
  ] as const) {
    const { sql } = open(proxy.url(sslmode))
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
    expect(proxy.seen.asked).toBe(asked)
  }
})

it.each(['require', 'verify-ca', 'verify-full', 'a-misspelt-one'])(
  'sslmode=%s refuses a server that has no TLS, and tells it nothing',
  async (sslmode) => {
    const proxy = await startProxy()
    const { sql } = open(proxy.url(sslmode))
    expect(String(await failing(sql`select 1`))).toContain('the database server has no TLS')
    expect(proxy.seen).toMatchObject({ inside: '', clear: '' })
  },
)

it.each(['verify-ca', 'verify-full', 'a-misspelt-one'])(
  'sslmode=%s refuses a certificate of an unknown authority, also when the environment asks for no verification',
  async (sslmode) => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const proxy = await startProxy(RIGHT)
    const { sql } = open(proxy.url(sslmode))
    expect(String(await failing(sql`select 1`))).toContain('unable to verify the first certificate')
    expect(proxy.seen).toMatchObject({ inside: '', clear: '' })
  },
)

it('with an authority of NODE_EXTRA_CA_CERTS sslmode=verify-full takes the right name and refuses another, which the start says', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ipn-ca-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const caFile = join(folder, 'ca.pem')
  writeFileSync(caFile, authority.cert)
  const proxy = await startProxy(WRONG)
  const settings = { ...settingsFor(proxy.url('verify-full'), 'http://127.0.0.1:9') }
  const start = () => runMain({ ...settings, NODE_EXTRA_CA_CERTS: caFile })

  const refused = start()
  expect(await refused.ended).toBe(1)
  const { out, err } = refused.output()
  expect(out + err).toContain("Hostname/IP does not match certificate's altnames")
  expect(proxy.seen).toMatchObject({ inside: '', clear: '' })

  proxy.identity = RIGHT
  const taken = start()
  await waitUntil(() => taken.output().out.includes('"ready"'), {
    what: 'ready',
    timeoutMs: 20_000,
  })
  expect(taken.output().err).toBe('')
  expect(proxy.seen.clear).toBe('')
})

it('more than one byte in the clear before TLS is refused', async () => {
  const proxy = await startProxy(RIGHT)
  proxy.answer = 'S and more'
  const { sql } = open(proxy.url('require'))
  expect(String(await failing(sql`select 1`))).toContain('answered in the clear before TLS')
})

it.each(['goodbye', 'S and more', 'N'] as const)(
  'a server that answers "%s" costs the pool no place: it works once the server speaks',
  async (answer) => {
    const proxy = await startProxy(RIGHT)
    proxy.answer = answer
    const { sql } = open(proxy.url('require'))
    for (let n = 1; n <= 3; n += 1) await failing(sql`select 1`)
    expect(proxy.seen.asked).toBe(3)
    proxy.answer = 'S'
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  },
)

it('a server that is silent is given up in time, counts as away, and costs the pool no place', async () => {
  const proxy = await startProxy(RIGHT)
  proxy.answer = 'nothing'
  const { sql } = open(proxy.url('require'))
  Object.assign(sql.options, describeLine(proxy.url('require'), 50))
  for (let n = 1; n <= 3; n += 1) {
    const error = await failing(sql`select 1`)
    expect(String(error)).toContain(`CONNECT_TIMEOUT 127.0.0.1:${proxy.port}`)
    expect(isDatabaseAway(error)).toBe(true)
  }
  proxy.answer = 'S'
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})

it('a server that hangs up instead of an answer counts as away', async () => {
  const proxy = await startProxy(RIGHT)
  proxy.answer = 'goodbye'
  const { sql } = open(proxy.url('require'))
  expect(isDatabaseAway(await failing(sql`select 1`))).toBe(true)
})

it.each(['disable', 'require'])(
  'of several hosts the next is tried when one is closed, with sslmode=%s',
  async (sslmode) => {
    const proxy = await startProxy(RIGHT)
    vi.stubEnv('PGPORT', await pickPort())
    onTestFinished(() => void vi.unstubAllEnvs())
    // The first host has the port of the environment, where nobody listens.
    const { sql } = open(proxy.url(sslmode).replace('127.0.0.1', '127.0.0.1,127.0.0.1'))
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  },
)

it('whoever listens hears again after a cut', async () => {
  const proxy = await startProxy(RIGHT)
  const { sql } = open(proxy.url('require'))
  const heard: string[] = []
  let listening = 0
  await sql.listen(
    'news',
    (text) => heard.push(text),
    () => {
      listening += 1
    },
  )
  proxy.cut()
  await waitUntil(() => listening === 2, { what: 'it listens again' })
  await database.sql.notify('news', 'after the cut')
  await waitUntil(() => heard.includes('after the cut'), { what: 'the news' })
  expect(proxy.seen.clear).toBe('')
})

it('a migration agrees on TLS as the service does', async () => {
  const proxy = await startProxy()
  const refused = await failing(migrateDatabase(proxy.url('require')))
  expect(String(refused)).toContain('the database server has no TLS')
  proxy.identity = RIGHT
  proxy.answer = 'S'
  await migrateDatabase(proxy.url('require'))
  expect(proxy.seen).toMatchObject({ clear: '' })
  expect(proxy.seen.inside).toContain('pg_advisory_lock')
})

it('a short statement given to a connection that breaks at that moment does not spoil its next session', async () => {
  const proxy = await startProxy()
  const { sql } = open(proxy.url())
  const line = describeLine(proxy.url(), 5_000)
  const late: Promise<unknown>[] = []
  const breakInTheMiddle = async (target: DriverOptions) => {
    const socket = await line.socket(target)
    const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
    socket.emit = (event: string | symbol, ...given: unknown[]) => {
      const isHeard = emit(event, ...given)
      if (event === 'error') late.push(failing(sql`select 'late'`))
      return isHeard
    }
    return socket
  }
  Object.assign(sql.options, { socket: breakInTheMiddle })
  for (let n = 1; n <= 3; n += 1) {
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
    proxy.cut()
    await waitUntil(() => late.length === n, { what: 'a statement at the moment of the break' })
    expect(isDatabaseAway(await late.at(-1))).toBe(true)
  }
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})
