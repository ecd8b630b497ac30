import type { Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.ts'
import { openPool } from '../../../src/platform/postgres/pool.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { startClosingServer } from '../../support/closing-server.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { makeGate } from '../../support/gate.ts'
import { startProxyTo } from '../../support/tcp-proxy.ts'
import { useTestDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startEveryConnection } from './connections.ts'

const database = useTestDatabase()

it('a server that vanished without closing anything fails what waits for it, and the pool recovers', async () => {
  const proxy = await startProxyTo(database.url)
  onTestFinished(() => proxy.stop())
  const { sql, close } = openPool(proxy.url, 2, { silenceMs: 1_000 })
  onTestFinished(close)
  await Promise.all([sql`select pg_sleep(0.05)`, sql`select pg_sleep(0.05)`])
  proxy.stall('all')
  const inFlight = [
    runInTransaction(sql, async (tx) => await tx`select pg_logical_emit_message(true, 'test', '')`),
    sql`select ${'a parameter'}::text`,
  ]
  for (const one of inFlight) {
    const error = await one.then(
      () => expect.unreachable('nothing answers'),
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({ code: 'ETIMEDOUT' })
    expect(isDatabaseUnavailable(error)).toBe(true)
  }
  await proxy.heal()
  expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
})

it('a server that vanished is noticed by a new connection that it does not answer, one that is busy is left alone', async () => {
  const gone = await startProxyTo(database.url)
  onTestFinished(() => gone.stop())
  const open = (url: string, silenceMs: number) => {
    const { sql, close } = openPool(url, 1, { silenceMs, connectMs: 1_000 })
    onTestFinished(close)
    return sql
  }
  const patient = open(gone.url, 3_600_000)
  await patient`select 1`
  gone.stall('all')
  const codes: string[] = []
  patient`select 1`.catch((error: { code: string }) => codes.push(error.code))
  // It is asked every second, as the other one is every five.
  expect(await open(database.url, 8_000)`select 1 as n from pg_sleep(2.5)`).toEqual([{ n: 1 }])
  await expect.poll(() => codes, { timeout: 20_000 }).toEqual(['ETIMEDOUT'])
})

it('a server that vanished in the middle of a description is noticed', async () => {
  const proxy = await startDatabaseProxy(database.url)
  onTestFinished(() => proxy.stop())
  const { sql, close } = openPool(proxy.url(), 1, { silenceMs: 500 })
  onTestFinished(close)
  await sql`select 1`
  const PARSED = Buffer.from('1\0\0\0\u0004')
  proxy.alter = (answer) => {
    proxy.alter = () => Buffer.alloc(0)
    return answer.subarray(0, PARSED.length)
  }
  const codes: string[] = []
  sql`select ${'a parameter'}::text`.catch((error: { code: string }) => codes.push(error.code))
  await expect.poll(() => codes, { timeout: 20_000 }).toEqual(['ETIMEDOUT'])
})

it('a server that still answers new connections, but not what it owes, is given up', async () => {
  const { sql, close } = openPool(database.url, 1, { silenceMs: 500 })
  onTestFinished(close)
  const codes: string[] = []
  sql`select pg_sleep(60)`.catch((error: { code: string }) => codes.push(error.code))
  await expect.poll(() => codes, { timeout: 20_000 }).toEqual(['ETIMEDOUT'])
})

// porsager/postgres 1193: a proxy in front of a server that is down accepts, reads and closes.
it.each([
  ['before', ''],
  // AuthenticationOk, BackendKeyData, ReadyForQuery.
  ['as soon as', 'R\0\0\0\b\0\0\0\0K\0\0\0\f\0\0\0\u0001\0\0\0\u0001Z\0\0\0\u0005I'],
])(
  'a server that closes every session %s it is open fails who waits, one by each attempt',
  async (_, greeting) => {
    const proxy = await startProxyTo(database.url)
    onTestFinished(() => proxy.stop())
    const { sql, close } = openDatabase(proxy.url, 10)
    onTestFinished(close)
    await startEveryConnection(sql)
    const closing = await startClosingServer(greeting)
    proxy.pointTo(closing.port)
    proxy.cut()
    const failures: unknown[] = []
    sql`select 1`.catch((error: unknown) => failures.push(error))
    await expect.poll(() => failures.length, { timeout: 20_000 }).toBe(1)
    const before = closing.countConnections()
    const ends = await Promise.allSettled([
      ...Array.from({ length: 60 }, () => sql`select 1`),
      ...Array.from({ length: 20 }, () => runInTransaction(sql, (tx) => tx`select 1`)),
    ])
    for (const end of ends) {
      expect(end.status === 'rejected' && isDatabaseUnavailable(end.reason)).toBe(true)
    }
    expect(closing.countConnections() - before).toBeLessThanOrEqual(ends.length)
    proxy.pointTo(Number(new URL(database.url).port))
    const isBack = () => sql`select 1`.then(Boolean, () => false)
    await waitUntil(isBack, { what: 'the pool recovers' })
  },
)

it('a network without a route to the server fails who waits, and not the process', async () => {
  const { sql, close } = openDatabase('postgres://u@255.255.255.255:5432/x', 1)
  onTestFinished(close)
  await expect(sql`select 1`).rejects.toMatchObject({ syscall: 'connect' })
})

it('a pool keeps its size when some connections fail while others open', async () => {
  const proxy = await startDatabaseProxy(database.url)
  onTestFinished(() => proxy.stop())
  const { sql, close } = openPool(proxy.url(), 2)
  onTestFinished(close)
  const held = new Map<Socket, Buffer>()
  // The first connection is slow to open, the second one fails meanwhile, and further ones are slow again.
  proxy.alter = (answer, client) => {
    if (held.size === 1 && !held.has(client)) client.destroy()
    held.set(client, Buffer.concat([held.get(client) ?? Buffer.alloc(0), answer]))
    return Buffer.alloc(0)
  }
  const run = (work: () => Promise<unknown>) =>
    runInTransaction(sql, async (tx) => {
      await tx`select 1`
      await work()
    })
  let refused = 0
  const startUnit = () =>
    run(async () => {}).catch(() => {
      refused += 1
    })
  const early = [startUnit()]
  await waitUntil(() => held.size > 0, { what: 'a connection that opens' })
  early.push(startUnit())
  await waitUntil(() => held.size > 2 || refused === 2, { what: 'a connection that fails' })
  const [first] = held
  const { alter } = proxy
  proxy.alter = (answer, client) => (client === first?.[0] ? answer : alter(answer, client))
  first?.[0].write(first[1])
  await Promise.all(early)
  proxy.alter = (answer) => answer
  for (const [client, bytes] of held) if (client !== first?.[0]) client.write(bytes)
  // Two units of work meet: each goes on once the other has begun.
  const begun = [makeGate(), makeGate()] as const
  const meet = (own: 0 | 1) =>
    run(async () => {
      begun[own].open()
      await begun[1 - own]?.opened
    })
  await expect(Promise.all([meet(0), meet(1)])).resolves.toHaveLength(2)
})

it('attempts to connect wait longer the more of them have failed', async () => {
  const closing = await startClosingServer()
  const { sql, close } = openDatabase(`postgres://u@127.0.0.1:${closing.port}/x`, 1)
  onTestFinished(close)
  const startedAt = performance.now()
  // It connects again by itself whenever its connection is lost.
  sql.listen('news', () => {}).catch(() => {})
  await waitUntil(() => closing.countConnections() >= 12, { what: 'twelve attempts' })
  // The waits are 1.8 s at least; without them it is some milliseconds.
  expect(performance.now() - startedAt).toBeGreaterThan(1_500)
})

it('several servers of PGHOST are not connected to in turn without a pause', async () => {
  const closing = await startClosingServer()
  vi.stubEnv('PGHOST', '127.0.0.1,127.0.0.1')
  vi.stubEnv('PGPORT', String(closing.port))
  onTestFinished(() => void vi.unstubAllEnvs())
  const { sql, close } = openPool('postgres:///name', 1)
  onTestFinished(close)
  await expect(sql`select 1`).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(closing.countConnections()).toBe(1)
})
