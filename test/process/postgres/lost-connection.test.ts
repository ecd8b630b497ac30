import { setImmediate as nextTurn } from 'node:timers/promises'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import type { Sql } from '../../../src/platform/postgres/types.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { useOwnDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startEveryConnection } from './connections.ts'

const CONNECTIONS = 10
const ROUNDS = 5
/** The driver writes a statement of this length at once, like those of the intake. */
const PADDING = 'x'.repeat(2_000)

/** A connection that cannot start its session times out after 5 s; nothing else takes this long (ms). */
const STUCK_MS = 4_500

const database = useOwnDatabase()
beforeAll(async () => void (await database.sql`create table stored (n int)`))

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

it('a listener receives notifications again after its connection was cut', async () => {
  const proxy = await startDatabaseProxy(database.url, makeAuthority().issue('127.0.0.1'))
  onTestFinished(() => proxy.stop())
  const { sql, close } = openDatabase(proxy.url('require'), 1)
  onTestFinished(close)
  const received: string[] = []
  let listening = 0
  await sql.listen(
    'news',
    (text) => received.push(text),
    () => {
      listening += 1
    },
  )
  proxy.cut()
  await waitUntil(() => listening === 2, { what: 'it listens again' })
  await database.sql.notify('news', 'after the cut')
  await waitUntil(() => received.includes('after the cut'), { what: 'the news' })
  expect(proxy.seen.clear).toBe('')
})

async function fill(sql: Sql): Promise<void> {
  await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => sql`select pg_sleep(0.01)`))
}
