import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { openDatabase, type Sql } from '../src/db/client.ts'
import { makeAuthority } from './support/certificates.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { startDatabaseProxy } from './support/database-proxy.ts'
import { waitUntil } from './support/wait-until.ts'

const CONNECTIONS = 10
const ROUNDS = 5
/** The driver writes a statement of this length at once, as the intake's are. */
const PADDING = 'x'.repeat(2_000)

/** A connection that cannot begin its session is given up after 5 s: nothing short of that takes so long. */
const STUCK_MS = 4_500

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await database.sql`create table said (n int)`
})
afterAll(() => database.drop())

it.each([
  ['in the clear', 'disable'],
  ['over TLS', 'require'],
])(
  'a statement that is said to be done was done, also one given to a connection that breaks at that moment, %s',
  async (_how, sslmode) => {
    await database.sql`truncate said`
    const proxy = await startDatabaseProxy(database.url, makeAuthority().issue('127.0.0.1'))
    onTestFinished(() => proxy.stop())
    const broken = openDatabase(proxy.url(sslmode), CONNECTIONS)
    onTestFinished(() => broken.close())
    const said: number[] = []
    let ended = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      await startEveryConnection(broken.sql)
      proxy.cut()
      // One in each turn of the event loop, fewer than connections: some meet the turn between error and close.
      for (let turn = 0; turn < CONNECTIONS - 2; turn += 1) {
        await nextTurn()
        const n = round * CONNECTIONS + turn
        broken.sql
          .unsafe(`insert into said values (${n}) -- ${PADDING}`)
          .then(
            () => said.push(n),
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
    await waitUntil(() => ended === all, { what: 'every statement has its end' })
    const rows = await database.sql<{ n: number }[]>`select n from said`
    const done = new Set(rows.map(({ n }) => n))
    expect(said.filter((n) => !done.has(n))).toEqual([])
  },
)

it('connections that break all at once leave none waiting, and the pool serves on', async () => {
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
  async function askOn(n: number): Promise<void> {
    while (!isOver) {
      const rows = await broken.sql<{ n: number }[]>`select ${n}::int as n`.catch(() => undefined)
      if (rows && rows[0]?.n !== n) wrong.push(rows)
    }
  }
  const askers = Promise.all(Array.from({ length: 3 * CONNECTIONS }, (_, n) => askOn(n)))
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
  askers.then(() => {
    ended = true
  })
  await waitUntil(() => ended, { what: 'every statement has its end' })
  expect({ wrong, stuck }).toEqual({ wrong: [], stuck: [] })
})

async function fill(sql: Sql): Promise<void> {
  await Promise.allSettled(Array.from({ length: CONNECTIONS }, () => sql`select pg_sleep(0.01)`))
}

/** Comes back with all of them past their start: none of them is new to what is about to happen. */
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
