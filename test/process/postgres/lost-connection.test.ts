import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.ts'
import { buildSocketOptions } from '../../../src/platform/postgres/socket.ts'
import { runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { createTestDatabase, type OwnDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { startProxyTo } from '../../support/tcp-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

const CONNECTIONS = 10
const ROUNDS = 5
/** The driver writes a statement of this length at once, like those of the intake. */
const PADDING = 'x'.repeat(2_000)

/** A connection that cannot start its session times out after 5 s; nothing else takes this long (ms). */
const STUCK_MS = 4_500

let database: OwnDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await database.sql`create table stored (n int)`
})
afterAll(() => database.drop())

it.each([
  ['in the clear', 'disable'],
  ['over TLS', 'require'],
])(
  'a statement that is reported as done was done, even one sent on a connection that breaks at that moment, %s',
  async (_how, sslmode) => {
    await database.sql`truncate stored`
    const proxy = await startDatabaseProxy(database.url, makeAuthority().issue('127.0.0.1'))
    onTestFinished(() => proxy.stop())
    const broken = openDatabase(proxy.url(sslmode), CONNECTIONS)
    onTestFinished(() => broken.close())
    const reported: number[] = []
    let ended = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      await startEveryConnection(broken.sql)
      proxy.cut()
      // One per turn of the event loop, fewer than connections: some are sent between error and close.
      for (let turn = 0; turn < CONNECTIONS - 2; turn += 1) {
        await nextTurn()
        const n = round * CONNECTIONS + turn
        broken.sql
          .unsafe(`insert into stored values (${n}) -- ${PADDING}`)
          .then(
            () => reported.push(n),
            () => {},
          )
          .finally(() => {
            ended += 1
          })
      }
      await fill(broken.sql)
      await fill(broken.sql)
    }
    const all = ROUNDS * (CONNECTIONS - 2)
    await waitUntil(() => ended === all, { what: 'every statement has settled' })
    const rows = await database.sql<{ n: number }[]>`select n from stored`
    const done = new Set(rows.map(({ n }) => n))
    expect(reported.filter((n) => !done.has(n))).toEqual([])
  },
)

it('connections that break all at once leave no statement waiting, and the pool recovers', async () => {
  const proxy = await startDatabaseProxy(database.url, makeAuthority().issue('127.0.0.1'))
  onTestFinished(() => proxy.stop())
  const broken = openDatabase(proxy.url('disable'), CONNECTIONS)
  onTestFinished(() => broken.close())
  let isOver = false
  onTestFinished(() => {
    isOver = true
  })
  const wrong: unknown[] = []
  const stuck: number[] = []
  async function queryUntilOver(n: number): Promise<void> {
    while (!isOver) {
      const rows = await broken.sql<{ n: number }[]>`select ${n}::int as n`.catch(() => undefined)
      if (rows && rows[0]?.n !== n) wrong.push(rows)
    }
  }
  const queries = Promise.all(Array.from({ length: 3 * CONNECTIONS }, (_, n) => queryUntilOver(n)))
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now()
    await Promise.all(
      Array.from({ length: 20 * CONNECTIONS }, () => broken.sql`select 1`.catch(() => undefined)),
    )
    if (performance.now() - started > STUCK_MS) stuck.push(round)
    await startEveryConnection(broken.sql)
    proxy.cut()
  }
  isOver = true
  let ended = false
  queries.then(() => {
    ended = true
  })
  await waitUntil(() => ended, { what: 'every statement has settled' })
  expect({ wrong, stuck }).toEqual({ wrong: [], stuck: [] })
})

it('a server that vanished without closing anything fails what waits for it, and the pool recovers', async () => {
  const proxy = await startProxyTo(database.url)
  onTestFinished(() => proxy.stop())
  const { sql, close } = openDatabase(proxy.url, 2)
  onTestFinished(close)
  const options = buildSocketOptions(proxy.url, 20_000, {
    sessions: new Set(),
    silenceMs: 1_000,
  })
  Object.assign(sql.options, { socket: options.socket })
  await Promise.all([sql`select pg_sleep(0.05)`, sql`select pg_sleep(0.05)`])
  proxy.stall('all')
  const inFlight = [
    runInTransaction(sql, async (tx) => await tx`insert into stored values (1)`),
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

async function fill(sql: Sql): Promise<void> {
  await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => sql`select pg_sleep(0.01)`))
}

/** Resolves once every connection of the pool has started its session. */
async function startEveryConnection(sql: Sql): Promise<void> {
  const sessions = new Set<number>()
  const ask = async () => {
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid, pg_sleep(0.02)`
    if (row) sessions.add(row.pid)
  }
  const isEveryOneOpen = async () => {
    await Promise.allSettled(Array.from({ length: 2 * CONNECTIONS }, ask))
    return sessions.size === CONNECTIONS
  }
  await waitUntil(isEveryOneOpen, { what: 'every connection of the pool serves' })
}
