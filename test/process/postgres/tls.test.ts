import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.ts'
import { openPool } from '../../../src/platform/postgres/pool.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { makeFolder } from '../../support/embedded.ts'
import { hurry } from '../../support/hurry.ts'
import { pickPort } from '../../support/ports.ts'
import { runMain, settingsFor } from '../../support/process.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const authority = makeAuthority()
const RIGHT = authority.issue('127.0.0.1')
const WRONG = authority.issue('database.example')

const database = useTestDatabase()

async function startProxy(identity?: typeof RIGHT) {
  const proxy = await startDatabaseProxy(database.url, identity)
  onTestFinished(() => proxy.stop())
  return proxy
}

/** Opens a pool of one connection: if it is lost for good, no query works. */
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
  'sslmode=%s uses TLS with a server that has it, and sends nothing in plain text',
  async (sslmode) => {
    const proxy = await startProxy(RIGHT)
    const { sql } = open(proxy.url(sslmode))
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
    expect(proxy.seen).toMatchObject({ asked: 1, clear: '' })
    expect(proxy.seen.inside).toContain('select 1 as n')
  },
)

it('sslmode=prefer continues in plain text with a server that has no TLS, and disable does not request it', async () => {
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
  'sslmode=%s refuses a server that has no TLS, and sends it nothing',
  async (sslmode) => {
    const proxy = await startProxy()
    const { sql } = open(proxy.url(sslmode))
    expect(String(await failing(sql`select 1`))).toContain('the database server has no TLS')
    expect(proxy.seen).toMatchObject({ inside: '', clear: '' })
  },
)

it.each(['verify-ca', 'verify-full', 'a-misspelt-one'])(
  'sslmode=%s refuses a certificate of an unknown authority, even when the environment disables verification',
  async (sslmode) => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const proxy = await startProxy(RIGHT)
    const { sql } = open(proxy.url(sslmode))
    expect(String(await failing(sql`select 1`))).toContain('unable to verify the first certificate')
    expect(proxy.seen).toMatchObject({ inside: '', clear: '' })
  },
)

it('with an authority of NODE_EXTRA_CA_CERTS sslmode=verify-full accepts the right name and refuses another, which the start reports', async () => {
  const caFile = join(makeFolder(), 'ca.pem')
  writeFileSync(caFile, authority.cert)
  const proxy = await startProxy(WRONG)
  const settings = { ...settingsFor(proxy.url('verify-full'), 'http://127.0.0.1:9') }
  const start = () => runMain({ ...settings, NODE_EXTRA_CA_CERTS: caFile })

  const refused = start()
  expect(await refused.ended).toBe(1)
  const { out, err } = refused.output()
  expect(out + err).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
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

it('more than one byte in plain text before TLS is refused', async () => {
  const proxy = await startProxy(RIGHT)
  proxy.answer = 'S and more'
  const { sql } = open(proxy.url('require'))
  expect(String(await failing(sql`select 1`))).toContain(
    'more than one byte in plain text before TLS',
  )
})

it.each(['goodbye', 'S and more', 'N'] as const)(
  'a server that answers "%s" costs the pool no connection: it works once the server does',
  async (answer) => {
    const proxy = await startProxy(RIGHT)
    proxy.answer = answer
    const { sql } = open(proxy.url('require'))
    for (let n = 1; n <= 3; n += 1) {
      const error = await failing(sql`select 1`)
      if (answer === 'goodbye') expect(isDatabaseUnavailable(error)).toBe(true)
    }
    expect(proxy.seen.asked).toBe(3)
    proxy.answer = 'S'
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  },
)

it('a server that does not respond times out, counts as unavailable, and costs the pool no connection', async () => {
  const proxy = await startProxy(RIGHT)
  proxy.answer = 'nothing'
  const { sql, close } = openPool(proxy.url('require'), 1, { connectMs: 300 })
  onTestFinished(close)
  for (let n = 1; n <= 3; n += 1) {
    const error = await failing(sql`select 1`)
    expect(String(error)).toContain(`CONNECT_TIMEOUT 127.0.0.1:${proxy.port}`)
    expect(isDatabaseUnavailable(error)).toBe(true)
  }
  proxy.answer = 'S'
  // A busy machine may need longer than that for TLS, once or twice.
  const isBack = () => sql`select 1`.then(Boolean, () => false)
  await waitUntil(isBack, { what: 'the pool has its connection' })
})

it.each(['disable', 'require'])(
  'of several hosts the next is tried when one is closed, with sslmode=%s',
  async (sslmode) => {
    const proxy = await startProxy(RIGHT)
    vi.stubEnv('PGPORT', await pickPort())
    onTestFinished(() => void vi.unstubAllEnvs())
    // The first host gets the port of the environment, where no server listens.
    const { sql } = open(proxy.url(sslmode).replace('127.0.0.1', '127.0.0.1,127.0.0.1'))
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
  },
)

it('a migration negotiates TLS as the service does', async () => {
  const proxy = await startProxy()
  const refused = await failing(migrateDatabase(proxy.url('require')))
  expect(String(refused)).toContain('the database server has no TLS')
  proxy.identity = RIGHT
  proxy.answer = 'S'
  await migrateDatabase(proxy.url('require'))
  expect(proxy.seen).toMatchObject({ clear: '' })
  expect(proxy.seen.inside).toContain('migrations')
})

it('a short statement sent on a connection that breaks at that moment does not corrupt its next session', async () => {
  const proxy = await startProxy()
  const { sql } = open(proxy.url())
  const late: Promise<unknown>[] = []
  const openSocket: (...given: unknown[]) => Promise<Socket> = Reflect.get(sql.options, 'socket')
  const breakInTheMiddle = async (...given: unknown[]) => {
    const socket = await openSocket(...given)
    const emit: (event: string | symbol, ...given: unknown[]) => boolean = socket.emit.bind(socket)
    socket.emit = (event: string | symbol, ...given: unknown[]) => {
      const hasListeners = emit(event, ...given)
      // In the turn whose end is the close: what the driver is given there stays in its buffer.
      if (event === 'error') setImmediate(() => late.push(failing(sql`select 'late'`)))
      return hasListeners
    }
    return socket
  }
  Object.assign(sql.options, { socket: breakInTheMiddle })
  const ask = () => sql`select 1 as n`.catch((error: unknown) => error)
  for (let n = 1; n <= 3; n += 1) {
    expect(await ask()).toEqual([{ n: 1 }])
    proxy.cut()
    await waitUntil(() => late.length === n, { what: 'a statement at the moment of the break' })
    expect(isDatabaseUnavailable(await late.at(-1))).toBe(true)
  }
  expect(await ask()).toEqual([{ n: 1 }])
})

// A statement that is late is cancelled through a connection of its own.
it.each([['refuses TLS'], ['has no certificate']])(
  'a request to cancel a statement is given up when the server %s by then',
  async (reason) => {
    const proxy = await startProxy(RIGHT)
    const { sql } = open(proxy.url('require'))
    await sql`select 1`
    if (reason === 'refuses TLS') proxy.answer = 'N'
    else proxy.identity = undefined
    hurry(35_000, 200)
    const asked = proxy.seen.asked
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    onTestFinished(() => void process.off('unhandledRejection', unhandled))
    await sql`select pg_sleep(1)`
    expect(proxy.seen.asked).toBe(asked + 1)
    expect(unhandled).not.toHaveBeenCalled()
  },
)
