import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/db/client.ts'
import { pipeline, runInTransaction } from '../../../src/platform/postgres/transaction.ts'
import { nameStatement } from '../../support/postgres-wire.ts'
import { startStatementProxy } from '../../support/statement-proxy.ts'
import { useOwnDatabase } from '../../support/use-started.ts'

const database = useOwnDatabase()

/** A pool through a proxy, and a table. */
async function openThroughProxy() {
  const proxy = await startStatementProxy(database.url)
  const { sql, close } = openDatabase(proxy.url, 2)
  onTestFinished(async () => {
    await close()
    await proxy.stop()
  })
  await database.sql`create table if not exists kept (id int)`
  await database.sql`truncate kept`
  /** Two statements that share a round trip, and one after them, in one transaction. */
  const keep = () =>
    runInTransaction(sql, async (tx) => {
      await pipeline(tx`insert into kept values (${1})`, tx`insert into kept values (${2})`)
      await tx`insert into kept values (${3})`
    })
  const readKept = async () => {
    const rows = await database.sql<{ id: number }[]>`select id from kept order by id`
    return rows.map(({ id }) => id)
  }
  return { proxy, sql, keep, readKept }
}

describe('the statement proxy', () => {
  it('passes everything on, and names each statement by its transaction and its turn', async () => {
    const { proxy, sql, keep, readKept } = await openThroughProxy()
    await sql`select 1`
    const watch = proxy.watch(['keep'])
    await keep()
    await sql`select id from kept where id = ${2}`
    await keep()
    const inserts = ['keep: insert kept', 'keep: insert kept (2)', 'keep: insert kept (3)']
    expect(watch.seen.slice(0, 6)).toEqual([
      'keep: begin',
      ...inserts,
      'keep: commit',
      'select kept',
    ])
    expect(watch.seen[6]).toBe('transaction 2: begin')
    expect(watch.isStruck()).toBe(false)
    expect(await readKept()).toEqual([1, 1, 2, 2, 3, 3])
  })

  it.each([
    ['keep: begin', 'before', []],
    ['keep: insert kept (2)', 'before', []],
    ['keep: insert kept (3)', 'after', []],
    ['keep: commit', 'before', []],
    ['keep: commit', 'after', [1, 2, 3]],
  ] as const)(
    'loses the connection at "%s", %s: then %j is kept',
    async (statement, edge, kept) => {
      const { proxy, sql, keep, readKept } = await openThroughProxy()
      await sql`select 1`
      const strike = async () => void strikes.push(statement)
      const strikes: string[] = []
      const watch = proxy.watch(['keep'], { statement, edge, strike })
      await expect(keep()).rejects.toThrow()
      expect(watch.isStruck()).toBe(true)
      expect(strikes).toEqual([statement])
      expect(await readKept()).toEqual(kept)
      await keep()
      expect(await readKept()).toEqual([...kept, 1, 2, 3].toSorted())
    },
  )
})

it.each([
  ['BEGIN', 'begin'],
  ['insert into "refunds" ("id") values ($1)', 'insert refunds'],
  ['with due as (select 1) update transactions as t set x = 1', 'update transactions'],
  [
    'select * from (select 1 as k) as k join payments as p using (k) for update',
    'select payments locked',
  ],
  ['select extract(epoch from due_at), a is distinct from b from refunds', 'select refunds'],
  ['select from merchant_accounts where x = $1 for key share', 'select merchant_accounts locked'],
  [
    'select a from (select a from rows from (json_to_recordset($1) as (a int))) as k join refunds',
    'select refunds',
  ],
  [
    'select pg_notify(channel, payload) from json_to_recordset($1) as n (a text)',
    'select pg_notify',
  ],
])('the statement %j is named %j', (sql, name) => {
  expect(nameStatement(sql)).toBe(name)
})
