import type { Socket } from 'node:net'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { openPool } from '../../../src/platform/postgres/pool.ts'
import {
  pipeline,
  runInTransaction,
  runPipelined,
} from '../../../src/platform/postgres/transaction.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { makeGate } from '../../support/gate.ts'
import { hurry } from '../../support/hurry.ts'
import { useOwnDatabase } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const database = useOwnDatabase()
beforeAll(async () => void (await database.sql`create table stored (n int)`))

describe('a session that the server ends', () => {
  const terminate = (text: string) => database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and query like ${text} and wait_event = 'PgSleep'`
  const isAsleep = (text: string) => database.sql`
    select from pg_stat_activity
    where datname = current_database() and query like ${text} and wait_event = 'PgSleep'`
  const endWhile = (text: string) =>
    waitUntil(async () => (await terminate(text)).length > 0, { what: `the end of ${text}` })

  it('fails its own statement with the reason, and nothing in the next session', async () => {
    const { sql, close } = openDatabase(database.url, 1)
    onTestFinished(close)
    // Rows of the statement travel with the reason: of both, nothing is left for the next session.
    const sleeping = sql`select n, case when n = 3 then pg_sleep(60) end from generate_series(1, 3) as n`
    const ended = expect(sleeping).rejects.toMatchObject({ severity: 'FATAL', code: '57P01' })
    await endWhile('%when n = 3 then%')
    await ended
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
    await expect(sql`select pg_terminate_backend(pg_backend_pid())`).rejects.toThrow()
    expect(await sql.begin((tx) => tx`select 1 as n`)).toEqual([{ n: 1 }])
  })

  // porsager/postgres 1186: the driver forgets what it has not sent yet. It may be any error that ends a connection.
  it.each([['57P01'], ['CONNECTION_CLOSED']])(
    'fails the whole unit of work with %s, however many statements wait for their turn',
    async (code) => {
      const { sql, close } = openDatabase(database.url, 1)
      onTestFinished(close)
      const sockets: Socket[] = []
      const open: (...given: unknown[]) => Promise<Socket> = Reflect.get(sql.options, 'socket')
      const keep = async (...given: unknown[]) => {
        const socket = await open(...given)
        sockets.push(socket)
        return socket
      }
      Object.assign(sql.options, { socket: keep })
      const unit = runInTransaction(sql, async (tx) => {
        const all = Array.from({ length: 300 }, (_, n) => {
          return tx`select ${n}::int as ${tx(code)} from pg_sleep(0.2)`
        })
        await pipeline(...all)
      })
      // The server goes on for a while with what it got of a connection that the other test destroyed.
      const text = `select %${code}% from pg_sleep(0.2)`
      const codes: unknown[] = []
      unit.catch((error: { code: string }) => codes.push(error.code))
      if (code === '57P01') await endWhile(text)
      else {
        await waitUntil(() => sockets.length > 0, { what: 'a connection' })
        await waitUntil(async () => (await isAsleep(text)).length > 0, { what: 'a statement' })
        sockets[0]?.destroy(Object.assign(new Error('bad record mac'), { code: 'ERR_SSL_BAD_MAC' }))
      }
      await expect.poll(() => codes, { timeout: 20_000 }).toEqual([code])
      expect(await sql`select 1 as n`).toEqual([{ n: 1 }])
    },
  )

  // porsager/postgres 1208, 1215, 1216 and 1130: they end the process, or run inside of another unit of work.
  it('takes nothing more of its unit of work, which goes on, into the next session', async () => {
    const { sql, close } = openDatabase(database.url, 1)
    onTestFinished(close)
    await database.sql`truncate stored`
    const refused: string[] = []
    const note = (error: { code: string }) => void refused.push(error.code)
    const next = makeGate()
    const dead = runInTransaction(sql, async (tx) => {
      await tx`insert into stored values (1)`
      await tx`select 'dies' from pg_sleep(60)`.catch(note)
      await tx`insert into stored values (2)`.catch(note)
      await next.opened
      await tx`insert into stored values (3)`.catch(note)
      await tx`commit`.catch(note)
    })
    const ended = expect(dead).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
    await endWhile("select 'dies'%")
    await expect.poll(() => refused, { timeout: 20_000 }).toEqual(['57P01', 'CONNECTION_CLOSED'])
    // Units of work wait behind the dead one; the driver's own transactions do not.
    const other = sql.begin(async (tx) => {
      await tx`insert into stored values (4)`
      next.open()
      await ended
      throw new Error('this one is rolled back')
    })
    await expect(other).rejects.toThrow('this one is rolled back')
    expect(refused.slice(2)).toEqual(['CONNECTION_CLOSED', 'CONNECTION_CLOSED'])
    expect(await database.sql`select n from stored`).toEqual([])
    await runInTransaction(sql, async (tx) => await tx`insert into stored values (5)`)
    expect(await database.sql`select n from stored`).toEqual([{ n: 5 }])
  })
})

it('an error of a session that ends before it is ready again is that of no statement in the next one', async () => {
  const proxy = await startDatabaseProxy(database.url)
  onTestFinished(() => proxy.stop())
  const { sql, close } = openDatabase(proxy.url(), 1)
  onTestFinished(close)
  await sql`create table once (n int constraint only_once primary key)`
  await sql`insert into once values (${1})`
  proxy.alter = (answer, client) => {
    const end = findEndOfError(answer)
    if (end === undefined) return answer
    proxy.alter = (next, other) => (other === client ? Buffer.alloc(0) : next)
    setTimeout(() => client.destroy(), 50)
    return answer.subarray(0, end)
  }
  await expect(sql`insert into once values (${1})`).rejects.toThrow()
  const next = runInTransaction(sql, async (tx) => await tx`insert into once values (${2})`)
  await expect(next).resolves.toEqual([])
  expect(await sql`select n from once order by n`).toEqual([{ n: 1 }, { n: 2 }])
})

/** Where the first error among whole messages ends. */
function findEndOfError(messages: Buffer): number | undefined {
  for (let at = 0; at + 5 <= messages.length; ) {
    const next = at + 1 + messages.readUInt32BE(at + 1)
    if (messages[at] === 'E'.charCodeAt(0)) return next
    at = next
  }
  return undefined
}

// The driver sends a statement again whose plan was made for other columns, behind the COMMIT that was refused.
it('the last statement of a unit of work that fails is not committed by itself', async () => {
  const { sql, close } = openDatabase(database.url, 1)
  onTestFinished(close)
  await database.sql`create table widened (n int)`
  const store = (n: number) =>
    runPipelined(sql, {
      open: async (tx) => void (await tx`select 1`),
      work: async (tx) => ({
        value: n,
        last: () => tx`insert into widened (n) values (${n}) returning *`,
      }),
    })
  await store(1)
  await database.sql`alter table widened add more int`
  await expect(store(2)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(await sql`select n from widened`).toEqual([{ n: 1 }])
  await store(3)
  expect(await sql`select n from widened order by n`).toEqual([{ n: 1 }, { n: 3 }])
})

it('a statement whose rows have another shape by now is not repeated: its session ends', async () => {
  const { sql, close } = openDatabase(database.url, 1)
  onTestFinished(close)
  await database.sql`create table reshaped as select 1 as n`
  const read = () => sql`select * from reshaped`
  await read()
  await database.sql`alter table reshaped add more int`
  await expect(read()).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(await read()).toEqual([{ n: 1, more: null }])
})

// porsager/postgres 1119, 1181: the driver would leave as many places of the next answer empty.
it('a statement that fails among its rows leaves the next answer whole', async () => {
  const { sql, openReads, close } = openDatabase(database.url, 1)
  const reads = openReads(1)
  onTestFinished(async () => void (await Promise.all([close(), reads.close()])))
  const failing = 'select 1 / (3 - n) as n from generate_series(1, 5) as n'
  for (const session of [sql, reads.sql]) {
    await expect(session.unsafe(failing)).rejects.toMatchObject({ code: '22012' })
    expect(await session`select 1 as n`).toEqual([{ n: 1 }])
    const behind = [session.unsafe(failing), session`select n from generate_series(1, 2) as n`]
    const [failed, rows] = await Promise.allSettled(behind)
    expect([failed, rows]).toMatchObject([
      { status: 'rejected', reason: { code: '22012' } },
      { status: 'fulfilled', value: [{ n: 1 }, { n: 2 }] },
    ])
  }
})

it('a statement that got no connection in time is refused, and does nothing later', async () => {
  const { sql, close } = openPool(database.url, 1, { waitMs: 300 })
  onTestFinished(close)
  await database.sql`truncate stored`
  await runInTransaction(sql, async (tx) => {
    const late = sql`insert into stored values (${6})`
    await expect(late).rejects.toMatchObject({ code: 'CONNECTIONS_BUSY' })
    await tx`insert into stored values (7)`
  })
  expect(await sql`select n from stored`).toEqual([{ n: 7 }])
})

it('a statement that is late is cancelled, and not those that wait behind it', async () => {
  const { sql, close } = openPool(database.url, 1)
  onTestFinished(close)
  await sql`select 1`
  // Those behind it are late before it is.
  hurry(35_000, 400, 100)
  const late = sql`select pg_sleep(60)`.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )
  const answers: unknown[] = []
  for (const text of ['select 1 as n', 'select 2 as n', 'select 3 as n']) {
    const isAnswered = (rows: unknown) => answers.push(text, rows)
    sql.unsafe(text, [], { prepare: true }).then(isAnswered, isAnswered)
  }
  expect(await late).toBe('57014')
  const all = [1, 2, 3].flatMap((n) => [`select ${n} as n`, [{ n }]])
  await expect.poll(() => answers, { timeout: 20_000 }).toEqual(all)
})
