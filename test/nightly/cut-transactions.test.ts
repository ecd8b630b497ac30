import { createServer } from 'node:net'
import { sql } from 'drizzle-orm'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'
import { build } from '../../src/platform/postgres/drizzle.ts'
import { isDatabaseUnavailable } from '../../src/platform/postgres/errors.ts'
import { runInTransaction, runPipelined } from '../../src/platform/postgres/transaction.ts'
import type { Tx } from '../../src/platform/postgres/types.ts'
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { listen } from '../support/gateway.ts'
import { useOwnDatabase } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

const database = useOwnDatabase()
let own: Database
beforeEach(async () => {
  // One connection: the next unit of work meets whatever the last one left behind.
  own = openDatabase(database.url, 1)
  await database.sql`create table if not exists kept (x int)`
  await database.sql`truncate kept`
})
afterEach(() => own.close())

const kept = async () => (await database.sql`select x from kept order by x`).map(({ x }) => x)

/** What the driver still writes to a dead connection in a later turn. */
async function untilWritten(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50))
  await own.sql`select 1`.catch(() => {})
}

/** Checks that the pool works as before, and that its units of work are atomic. */
async function expectSound(): Promise<void> {
  for (let n = 1; n <= 3; n += 1) {
    const work = runInTransaction(own.sql, async (tx) => {
      await tx`insert into kept values (${n})`
      if (n === 2) throw new Error('changed its mind')
    })
    await work.catch((error: unknown) => expect(String(error)).toContain('changed its mind'))
  }
  expect(await kept()).toEqual([1, 3])
}

/** Removes the server's CommandComplete message, and keeps ReadyForQuery. */
function cutOut(answer: Buffer, word: string): Buffer {
  const confirmation = Buffer.from(`C\0\0\0${String.fromCharCode(word.length + 5)}${word}\0`)
  const at = answer.indexOf(confirmation)
  if (at < 0) return answer
  return Buffer.concat([answer.subarray(0, at), answer.subarray(at + confirmation.length)])
}

describe('a unit of work', () => {
  it('waits for its turn for as long as those before it take', async () => {
    // Longer than a unit of work waits for a connection.
    const long = runInTransaction(own.sql, (tx) => tx`select pg_sleep(5.5)`)
    const others = [1, 2].map((n) =>
      runInTransaction(own.sql, (tx) => tx`insert into kept values (${n})`),
    )
    await Promise.all([long, ...others])
    expect(await kept()).toEqual([1, 2])
  })

  it('fails together with all that wait behind it when no connection comes, not one after the other', async () => {
    const port = await listen(createServer())
    const away = openDatabase(`postgres://postgres@127.0.0.1:${port}/none`, 1)
    onTestFinished(away.close)
    const works = Array.from({ length: 5 }, () => runInTransaction(away.sql, async () => {}))
    const [first, ...others] = await Promise.all(works.map((work) => work.catch((error) => error)))
    expect(isDatabaseUnavailable(first)).toBe(true)
    for (const other of others) expect(other).toBe(first)
  })

  it('returns what the work does, after its commit', async () => {
    const result = await runInTransaction(own.sql, async (tx) => {
      await tx`insert into kept values (7)`
      expect(await kept()).toEqual([])
      return 'done'
    })
    expect([result, await kept()]).toEqual(['done', [7]])
  })

  it('that waits for a connection while the only one is lost is settled, and the pool recovers', async () => {
    const proxy = await startDatabaseProxy(database.url)
    onTestFinished(() => proxy.stop())
    const { sql, close } = openDatabase(proxy.url(), 1)
    onTestFinished(close)
    await sql`select 1`
    const busy = sql`select pg_sleep(30)`.catch((error: unknown) => error)
    const isBusy = async () => {
      const rows = await database.sql`
        select from pg_stat_activity where datname = current_database() and query like '%pg_sleep(30)'`
      return rows.length > 0
    }
    await waitUntil(isBusy, { what: 'the only connection is in use' })
    const work = () => runInTransaction(sql, (tx) => tx`insert into kept values (9)`)
    const ended = work().then(
      () => 'done',
      (error: unknown) => (isDatabaseUnavailable(error) ? 'away' : error),
    )
    proxy.cut()
    expect(await busy).toBeInstanceOf(Error)
    expect(['done', 'away']).toContain(await ended)
    await work()
  })

  it('leaves nothing behind when the work throws, or a statement fails', async () => {
    const failure = new Error('no')
    const thrown = runInTransaction(own.sql, async (tx) => {
      await tx`insert into kept values (8)`
      throw failure
    })
    await expect(thrown).rejects.toBe(failure)
    const failed = runInTransaction(own.sql, async (tx) => {
      await tx`insert into kept values (9)`
      await Promise.all([tx`select 1 / 0`, tx`insert into kept values (10)`])
    })
    await expect(failed).rejects.toThrow('division by zero')
    expect(await kept()).toEqual([])
    await expectSound()
  })

  it.each<[string, (tx: Tx) => Promise<unknown>]>([
    ['the driver', async (tx) => await tx`select pg_sleep(30)`],
    ['the query builder', (tx) => build(tx).execute(sql`select pg_sleep(30)`)],
  ])(
    'whose connection the server ends in a statement of %s fails, and the next ones are atomic',
    async (_, sleep) => {
      const lost = runInTransaction(own.sql, async (tx) => {
        await tx`insert into kept values (11)`
        const [row] = await tx`select pg_backend_pid() as pid`
        const ended = sleep(tx).catch((error: unknown) => error)
        await database.sql`select pg_terminate_backend(${row?.pid})`
        throw await ended
      })
      await expect(lost).rejects.toMatchObject({ name: 'PostgresError', code: '57P01' })
      await untilWritten()
      await expectSound()
    },
  )

  it('fails with the error of the server, without the parameters, in a statement of the query builder', async () => {
    const failed = runInTransaction(own.sql, (tx) =>
      build(tx).execute(sql`select 1 / ${'0'}::int, ${'secret'}`),
    )
    await expect(failed).rejects.toMatchObject({ code: '22012', message: 'division by zero' })
  })

  it('of a process that was suspended too long in the middle fails, and writes nothing', async () => {
    const lost = runInTransaction(own.sql, async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 100`
      await tx`insert into kept values (12)`
      // Blocks this process, as if it had been stopped.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
      await tx`insert into kept values (13)`
      await tx`insert into kept values (14)`
    })
    await expect(lost).rejects.toThrow()
    await untilWritten()
    await expectSound()
  })

  it('fails although the work caught the error of a statement: the server has rolled it back', async () => {
    const caught = runInTransaction(own.sql, async (tx) => {
      await tx`insert into kept values (15)`
      await tx`select 1 / 0`.catch(() => {})
    })
    await expect(caught).rejects.toThrow('the server answered ROLLBACK to commit')
    expect(await kept()).toEqual([])
    await expectSound()
  })

  it.each([
    ['begin', 'BEGIN'],
    ['commit', 'COMMIT'],
  ])(
    'whose %s the server did not confirm fails, and nothing more is sent on its connection',
    async (statement, word) => {
      const proxy = await startDatabaseProxy(database.url)
      const through = openDatabase(proxy.url(), 1)
      onTestFinished(async () => {
        await through.close()
        await proxy.stop()
      })
      proxy.alter = (answer) => cutOut(answer, word)
      let isWorking = false
      const unconfirmed = runInTransaction(through.sql, async (tx) => {
        isWorking = true
        await tx`insert into kept values (16)`
      })
      await expect(unconfirmed).rejects.toThrow(`${statement} has no answer`)
      expect(isWorking).toBe(word === 'COMMIT')
      expect(proxy.seen.clear).not.toContain('rollback')
    },
  )

  it('never shares its connection, however many statements are in flight', async () => {
    const crowd = Array.from({ length: 250 }, (_, n) => own.sql`select ${n}::int as n`)
    const work = Array.from({ length: 20 }, (_, n) =>
      runInTransaction(own.sql, async (tx) => {
        await tx`insert into kept values (${n})`
        if (n % 2) throw new Error('undone')
      }).catch(() => {}),
    )
    await Promise.all([...crowd, ...work])
    expect(await kept()).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18])
  })

  it.each([
    ['commits with its last statement', '7', [6, 7]],
    ['commits nothing when its last statement fails', 'seven', []],
  ])('%s', async (_, last, wanted) => {
    const work = runPipelined(own.sql, {
      open: (tx) => tx`lock table kept`,
      work: async (tx) => {
        await tx`insert into kept values (6)`
        const statement = tx`insert into kept values (${last}::text::int)`
        return { value: 'done', last: () => statement }
      },
    })
    const end = await work.catch((error: unknown) => String(error))
    expect(end).toContain(wanted.length > 0 ? 'done' : 'invalid input syntax')
    expect(await kept()).toEqual(wanted)
    await own.sql`truncate kept`
    await expectSound()
  })
})
