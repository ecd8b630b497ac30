import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { notify, notifyAfterCommit } from '../../../../src/platform/postgres/notify.ts'
import { runInTransaction } from '../../../../src/platform/postgres/transaction.ts'
import { createTestDatabase, type OwnDatabase } from '../../../support/database.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const CHANNEL = 'of_the_test'

let database: OwnDatabase
let heard: string[]
beforeEach(async () => {
  database = await createTestDatabase()
  heard = []
  await database.sql`create table kept (x int)`
  await database.sql.listen(CHANNEL, (payload) => heard.push(payload))
})
afterEach(() => database.drop())

const untilHeard = (payload: string) =>
  waitUntil(() => heard.includes(payload), { what: `the notification ${payload}` })

it('equal notifications that gather are sent once, others in the order in which they came', async () => {
  for (const payload of ['a', 'b', 'b', 'c', 'b']) notify(database.sql, CHANNEL, payload)
  await untilHeard('c')
  notify(database.sql, CHANNEL, 'b')
  await waitUntil(() => heard.length === 4, { what: 'the one that came later' })
  expect(heard).toEqual(['a', 'b', 'c', 'b'])
})

it('those of one moment share a statement', async () => {
  const sent: string[] = []
  database.sql.options.debug = (_, statement) => {
    sent.push(...(/pg_notify/i.exec(statement) ?? []))
  }
  for (const payload of ['a', 'b', 'c']) notify(database.sql, CHANNEL, payload)
  await untilHeard('c')
  expect([heard, sent]).toEqual([['a', 'b', 'c'], ['pg_notify']])
})

it('a statement that fails loses its notifications, and the next ones are sent', async () => {
  notify(database.sql, CHANNEL, 'x'.repeat(8_001))
  await new Promise((resolve) => setImmediate(resolve))
  notify(database.sql, CHANNEL, 'after it')
  await untilHeard('after it')
  expect(heard).toEqual(['after it'])
})

describe('a unit of work', () => {
  it('notifies after its commit, never in it: no commit holds the lock of NOTIFY while it waits for the disk', async () => {
    const sent: string[] = []
    database.sql.options.debug = (_, statement) => {
      sent.push(...(/commit|pg_notify/i.exec(statement) ?? []))
    }
    await runInTransaction(database.sql, async (tx) => {
      notifyAfterCommit(tx, CHANNEL, 'committed')
      await tx`insert into kept values (1)`
    })
    await untilHeard('committed')
    expect(sent.map((word) => word.toLowerCase())).toEqual(['commit', 'pg_notify'])
    expect(await database.sql`select x from kept`).toEqual([{ x: 1 }])
  })

  it('that rolls back notifies nobody', async () => {
    const failed = runInTransaction(database.sql, async (tx) => {
      notifyAfterCommit(tx, CHANNEL, 'rolled back')
      await tx`select 1 / 0`
    })
    await expect(failed).rejects.toThrow('division by zero')
    notify(database.sql, CHANNEL, 'last')
    await untilHeard('last')
    expect(heard).toEqual(['last'])
  })

  it('refuses a connection whose commit it cannot follow', () => {
    expect(() => notifyAfterCommit(database.sql, CHANNEL)).toThrow('needs a unit of work')
  })
})

it('no statement of the service sends a NOTIFY but the one that sends nothing else', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      file.endsWith('.ts') && /pg_notify|sql\.notify/.test(readFileSync(`src/${file}`, 'utf8')),
  )
  expect(files).toEqual(['platform/postgres/notify.ts'])
})
