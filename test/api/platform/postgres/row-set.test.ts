import { eq } from 'drizzle-orm'
import { beforeEach, describe, expect, it } from 'vitest'
import { changes, transactions } from '../../../../src/db/schema.ts'
import { build } from '../../../../src/platform/postgres/drizzle.ts'
import {
  completeRow,
  insertRow,
  insertRows,
  pickColumns,
  rowSet,
} from '../../../../src/platform/postgres/row-set.ts'
import { runInTransaction } from '../../../../src/platform/postgres/transaction.ts'
import { emptyTables } from '../../../support/database.ts'
import { useTestDatabase } from '../../../support/use-started.ts'

const database = useTestDatabase()
beforeEach(() => emptyTables(database))

const COLUMNS = {
  merchantCode: 'text',
  amount: 'numeric',
  count: 'int',
  at: 'timestamptz',
  done: 'boolean',
} as const

describe('a row set', () => {
  it('keeps texts, decimals, times and nulls exactly, and the order of the rows', async () => {
    const { sql } = database
    const rows = [
      { merchantCode: `quote ' " \\ é 🙂`, amount: '10000.50', count: 3, at: null, done: true },
      {
        merchantCode: '',
        amount: '123456789012345678.1234',
        count: null,
        at: undefined,
        done: false,
      },
      {
        merchantCode: 'null',
        amount: null,
        count: 0,
        at: '2026-11-22 09:00:00.123456+00',
        done: null,
      },
    ]
    const read = await sql`
      select merchant_code, amount::text, count, at::text, done, ordinality::int
      from ${rowSet(sql, 'r', COLUMNS, rows)} order by ordinality desc`
    const expected = rows.map(({ merchantCode, at = null, ...row }, n) => ({
      ...{ merchant_code: merchantCode, at, ...row, ordinality: n + 1 },
    }))
    expect(read).toEqual(expected.reverse())
  })

  it('sends only the columns that are named, and may be empty', async () => {
    const { sql } = database
    const columns = { id: 'int' }
    const rows = [{ id: 7, secret: 'x' }]
    const [row] = await sql`select * from ${rowSet(sql, 'r', columns, rows)}`
    expect(row).toEqual({ id: 7, ordinality: 1 })
    expect(await sql`select * from ${rowSet(sql, 'r', columns, [])}`).toHaveLength(0)
  })
})

describe('insertRows', () => {
  const TRANSACTION = pickColumns(transactions, 'merchantCode', 'transactionId', 'currency')

  it('inserts in the order of the rows, with defaults for the columns that are not named', async () => {
    const { sql } = database
    const row = { merchantCode: 'M', transactionId: 'T', cause: 'query' }
    const columns = pickColumns(changes, 'merchantCode', 'transactionId', 'field', 'cause')
    const rows = ['c', 'a', 'b'].map((field) => ({ ...row, field }))
    await sql`${insertRows(sql, transactions, TRANSACTION, [{ ...row, currency: null }])}`
    await sql`${insertRows(sql, changes, columns, rows)}`
    const read = await sql`select field, at is not null as dated from changes order by id`
    expect(read).toEqual(['c', 'a', 'b'].map((field) => ({ field, dated: true })))
  })
})

describe("Drizzle's builder in a unit of work", () => {
  const VALUES = { merchantCode: 'M', transactionId: 'T' }
  const count = () => database.drizzle.$count(transactions)

  it('writes in the commit of the unit of work, and not without it', async () => {
    await runInTransaction(database.sql, async (tx) => {
      await build(tx).insert(transactions).values(VALUES)
      expect(await count()).toBe(0)
    })
    expect(await count()).toBe(1)
    const rolledBack = runInTransaction(database.sql, async (tx) => {
      const [row] = await build(tx)
        .update(transactions)
        .set({ currency: 'VND' })
        .where(eq(transactions.transactionId, 'T'))
        .returning({ currency: transactions.currency, dueAt: transactions.dueAt })
      expect(row).toEqual({ currency: 'VND', dueAt: null })
      throw new Error('rolled back')
    })
    await expect(rolledBack).rejects.toThrow('rolled back')
    const [row] = await database.drizzle.select().from(transactions)
    expect(row?.currency).toBeNull()
  })

  it('prepares a statement once for a connection', async () => {
    await runInTransaction(database.sql, async (tx) => {
      const prepared: number[] = []
      for (const transactionId of ['A', 'B', 'C']) {
        await build(tx)
          .insert(transactions)
          .values({ ...VALUES, transactionId })
        const rows = await tx`
          select from pg_prepared_statements where statement like 'insert into "transactions"%'`
        prepared.push(rows.length)
      }
      // Other tests may have prepared others on this connection.
      expect(prepared[0]).toBeGreaterThan(0)
      expect(new Set(prepared).size).toBe(1)
    })
  })
})

describe('a row inserted by itself', () => {
  const KEY = { merchantCode: 'M', transactionId: 'T' }
  const NOW = '2026-11-22 09:00:00.123456+00'
  const TIMES = { askedForAt: NOW, firstSeenAt: NOW, updatedAt: NOW }

  it('is stored as it was completed: with the defaults of what is left out', async () => {
    const given = { ...KEY, ...TIMES, currency: undefined, paidAmount: '10.50', sameOrder: ['T2'] }
    await insertRow(database.sql, transactions, given)
    const stored = await build(database.sql).select().from(transactions)
    expect(stored).toEqual([completeRow(transactions, given)])
    expect(stored).toMatchObject([{ currency: null, state: 'pending', want: 1, final: false }])
  })

  it('is not completed with what only the database knows', () => {
    expect(() => completeRow(transactions, KEY)).toThrow('the value of askedForAt must be given')
    const change = { ...KEY, field: 'status', cause: 'query', at: NOW }
    expect(() => completeRow(changes, change)).toThrow('the value of id must be given')
  })
})
