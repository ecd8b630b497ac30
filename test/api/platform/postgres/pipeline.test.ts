import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../../src/db/client.ts'
import { isConnectionLost } from '../../../../src/platform/postgres/errors.ts'
import {
  pipeline,
  runInTransaction,
  runPipelined,
} from '../../../../src/platform/postgres/transaction.ts'
import type { Tx } from '../../../../src/platform/postgres/types.ts'
import { useOwnDatabase, useStarted } from '../../../support/use-started.ts'

const database = useOwnDatabase()
const own = useStarted(
  async () => openDatabase(database.url, 1),
  (one) => one.close(),
)
beforeAll(async () => void (await database.sql`create table written (x int)`))

/** Inserts a number, and returns those that were there before. */
async function insert(tx: Tx, x: number): Promise<number[]> {
  const rows = await tx<{ x: number }[]>`
    with inserted as (insert into written values (${x})) select x from written order by x`
  return rows.map((row) => row.x)
}

describe('statements of a pipeline', () => {
  it('end with their connection, those included that the driver has not sent yet', async () => {
    const lone = openDatabase(database.url, 1)
    onTestFinished(() => lone.close())
    const work = runInTransaction(lone.sql, (tx) =>
      pipeline(
        tx`select pg_terminate_backend(pg_backend_pid()), ${'a'}::text as first`,
        tx`select ${'b'}::text as second`,
        tx`select ${'c'}::text as third`,
      ),
    )
    await expect(work).rejects.toSatisfy(isConnectionLost)
  })

  it('run in the order of the arguments, and each sees those before it', async () => {
    await runInTransaction(own.sql, async (tx) => {
      const results = await pipeline(insert(tx, 1), insert(tx, 2), insert(tx, 3))
      expect(results).toEqual([[], [1], [1, 2]])
      const [, none, rows] = await pipeline(
        tx`select pg_sleep(0.01)`,
        false,
        tx`select count(*)::int as n from written`,
      )
      expect([none, [...rows]]).toEqual([false, [{ n: 3 }]])
    })
  })

  it('reject with the first error, leave no rejection unhandled, and roll back', async () => {
    const unhandled: unknown[] = []
    const record = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', record)
    onTestFinished(() => void process.off('unhandledRejection', record))
    const before = await database.sql`select x from written`
    const work = runInTransaction(own.sql, (tx) =>
      pipeline(insert(tx, 7), tx`select 1 / 0`, tx`select 'skipped'`, insert(tx, 8)),
    )
    await expect(work).rejects.toThrow('division by zero')
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
    expect(await database.sql`select x from written`).toEqual(before)
  })
  it('sent with the commit reject with their own error, not with that of the commit', async () => {
    const unit = runPipelined(own.sql, {
      open: (tx) => insert(tx, 50),
      work: (tx) => {
        const statements = [tx`insert into written values (51)`, tx`select 1 / 0`, tx`select 1`]
        return Promise.resolve({ value: 0, last: () => pipeline(...statements) })
      },
    })
    await expect(unit).rejects.toThrow('division by zero')
    expect(await database.sql`select x from written where x in (50, 51)`).toEqual([])
  })

  it('end with the last one before the commit: what it does is part of the unit of work', async () => {
    const unit = runPipelined(own.sql, {
      open: async (tx) => await insert(tx, 40),
      work: (tx) => Promise.resolve({ value: 0, last: () => tx`select 1 / 0` }),
    })
    await expect(unit).rejects.toThrow('division by zero')
    expect(await database.sql`select x from written where x = 40`).toEqual([])
  })
})
