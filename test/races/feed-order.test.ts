import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openDatabase } from '../../src/db/client.ts'
import { recordEvents } from '../../src/events/record-events.ts'
import { publishEvents } from '../../src/feed/publish-events.ts'
import { runInTransaction } from '../../src/platform/postgres/transaction.ts'
import type { Sql, Tx } from '../../src/platform/postgres/types.ts'
import { seedTransaction } from '../support/api.ts'
import { borrowRig } from '../support/borrow-rig.ts'
import { emptyTables, type TestDatabase } from '../support/database.ts'
import { EVENT_DATA } from '../support/event-data.ts'
import { waitUntilBlocked, whileUncommitted } from '../support/locks.ts'
import { MERCHANT, type Rig } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Only the test publishes here. */
let rig: Rig
let database: TestDatabase
/** The pools of other processes. */
let others: ReturnType<typeof openDatabase>[] = []
let start = ''
beforeAll(async () => {
  rig = await borrowRig({ settings: { ROLE: 'web' } })
  database = rig.database
  others = [1, 2, 3].map(() => openDatabase(database.url, 8))
})
beforeEach(async () => {
  await emptyTables(database)
  start = (await read()).nextCursor
})
afterEach(async () => {
  await database.sql`drop function if exists hold cascade`
  await publishEvents(database.sql)
})
afterAll(async () => {
  await Promise.all(others.map((one) => one.close()))
  await rig.stop()
})

const Page = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      transactionId: z.string(),
      data: z.object({ id: z.coerce.number() }),
    }),
  ),
  nextCursor: z.string(),
})

async function read(after?: string, limit = 200): Promise<z.infer<typeof Page>> {
  const from = after === undefined ? '' : `&after=${after}`
  return Page.parse(await (await rig.api(`/v1/events?limit=${limit}${from}`)).json())
}

/** A reader that keeps its cursor and every event it received. */
function openReader(limit = 200) {
  let cursor = start
  const received: z.infer<typeof Page>['data'] = []
  return {
    received,
    names: () => received.map(({ transactionId, data: { id } }) => `${transactionId} ${id}`),
    async poll() {
      const { data, nextCursor } = await read(cursor, limit)
      received.push(...data)
      cursor = nextCursor
      return data.length
    },
  }
}

/** Records an event of a transaction; `n` distinguishes it from others. */
function record(tx: Tx, transactionId: string, n: number): Promise<void> {
  const { merchantCode } = MERCHANT
  return recordEvents(tx, [
    {
      merchantCode,
      transactionId,
      type: 'payment.updated',
      data: { ...EVENT_DATA['payment.updated'], id: String(n) },
    },
  ])
}

const commit = (transactionId: string, n: number, sql: Sql = database.sql) =>
  runInTransaction(sql, (tx) => record(tx, transactionId, n))

/** A publisher that numbers an event of this transaction stops there, uncommitted, until `work` is done. */
async function whilePublishingStops<T>(transactionId: string, work: () => Promise<T>): Promise<T> {
  await database.sql.unsafe(`
    create or replace function hold() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(42); return new; end $$;
    create trigger hold before insert on events for each row
      when (new.transaction_id = '${transactionId}') execute function hold()`)
  return whileUncommitted(database, (held) => held`select pg_advisory_xact_lock(42)`, work)
}

describe('an event whose commit ends late', () => {
  it('reaches a reader that is ahead, once; a reader by order of recording would never see it', async () => {
    const reader = openReader()
    const naive = async (after: number) => {
      const rows = await database.sql<{ id: number; transactionId: string }[]>`
        select id, transaction_id as "transactionId" from event_outbox where id > ${after} order by id`
      return rows.map(({ id, transactionId }) => ({ id, transactionId }))
    }
    await whileUncommitted(
      database,
      (held) => record(held, 'T-LATE', 1),
      async (commitLate) => {
        await commit('T-EARLY', 1)
        const seen = await naive(0)
        expect(seen.map(({ transactionId }) => transactionId)).toEqual(['T-EARLY'])
        await publishEvents(database.sql)
        await reader.poll()
        expect(reader.names()).toEqual(['T-EARLY 1'])
        await commitLate()
        expect(await naive(seen[0]?.id ?? 0)).toEqual([])
      },
    )
    await publishEvents(database.sql)
    await reader.poll()
    await reader.poll()
    expect(reader.names()).toEqual(['T-EARLY 1', 'T-LATE 1'])
  })

  it('blocks no other commit, no publisher and no reader', async () => {
    const reader = openReader()
    await whileUncommitted(
      database,
      (held) => record(held, 'T-LATE', 1),
      async () => {
        for (let n = 1; n <= 3; n += 1) {
          await commit('T-ON', n)
          expect(await publishEvents(database.sql)).toBe(1)
          expect(await reader.poll()).toBe(1)
        }
      },
    )
  })

  it('comes before the later events of its own transaction', async () => {
    await seedTransaction(database, { transactionId: 'T-OWN' })
    const lock = (tx: Tx) => tx`select from transactions where transaction_id = 'T-OWN' for update`
    const reader = openReader()
    let later: Promise<void> | undefined
    await whileUncommitted(
      database,
      async (held) => {
        await lock(held)
        await record(held, 'T-OWN', 1)
      },
      async (commitFirst) => {
        later = runInTransaction(database.sql, async (tx) => {
          await lock(tx)
          await record(tx, 'T-OWN', 2)
        })
        await waitUntilBlocked(database)
        await commit('T-OTHER', 1)
        await publishEvents(database.sql)
        await commitFirst()
        await later
      },
    )
    await publishEvents(database.sql)
    await reader.poll()
    expect(reader.names()).toEqual(['T-OTHER 1', 'T-OWN 1', 'T-OWN 2'])
  })
})

describe('a publisher', () => {
  it('waits for one that has numbered an event and not committed: no later position becomes visible first', async () => {
    const reader = openReader()
    let publishing: Promise<number>[] = []
    await whileUncommitted(
      database,
      (held) => record(held, 'T-LATE', 1),
      async (commitLate) => {
        await commit('T-HELD', 1)
        await whilePublishingStops('T-HELD', async () => {
          const first = publishEvents(database.sql, 1)
          await waitUntilBlocked(database, 1)
          // Recorded before the held one: a second publisher would take it without meeting the first.
          await commitLate()
          const second = publishEvents(rig.service.ctx.db.sql, 1)
          await waitUntilBlocked(database, 2)
          expect(await reader.poll()).toBe(0)
          publishing = [first, second]
        })
      },
    )
    expect(await Promise.all(publishing)).toEqual([1, 1])
    await reader.poll()
    expect(reader.names()).toEqual(['T-HELD 1', 'T-LATE 1'])
  })

  it('that dies before its commit leaves everything to the next, and no position is used twice', async () => {
    const reader = openReader()
    await commit('T-A', 1)
    await commit('T-HELD', 1)
    const victim = others[0]
    if (!victim) throw new Error('no other process')
    await whilePublishingStops('T-HELD', async () => {
      const dying = publishEvents(victim.sql)
      const ended = expect(dying).rejects.toThrow()
      await waitUntilBlocked(database, 1)
      await database.sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      await ended
      expect(await reader.poll()).toBe(0)
    })
    expect(await publishEvents(database.sql)).toBe(2)
    await reader.poll()
    await reader.poll()
    expect(reader.names()).toEqual(['T-A 1', 'T-HELD 1'])
  })

  it('notifies listeners once per batch', async () => {
    const heard: string[] = []
    const { unlisten } = await database.sql.listen('events_published', (text) => heard.push(text))
    await Promise.all(['T-1', 'T-2', 'T-3'].map((id) => commit(id, 1)))
    await publishEvents(database.sql)
    await publishEvents(database.sql)
    await waitUntil(() => heard.length > 0, { what: 'the notification of the batch' })
    await database.sql.notify('events_published', 'last')
    await waitUntil(() => heard.includes('last'), { what: 'all that was sent before' })
    await unlisten()
    expect(heard).toEqual(['', 'last'])
  })
})

it('under concurrent commits of very different length and several publishers, a reader misses nothing and sees nothing twice', async () => {
  const writers = 12
  const commits = 12
  const transactions = ['T-1', 'T-2', 'T-3', 'T-4']
  for (const transactionId of transactions) await seedTransaction(database, { transactionId })
  const counters = new Map(transactions.map((id) => [id, 0]))
  const recorded: string[] = []
  let writing = true

  // Each event is recorded while its transaction's row is locked, as units of work do.
  async function write(writer: number) {
    for (let round = 0; round < commits; round += 1) {
      const id = transactions[(writer + round) % transactions.length] ?? ''
      const heldS = ((writer * 7 + round * 5) % 9) ** 2 / 1_000
      const rollBack = new Error('rolled back')
      const fails = (writer + round) % 7 === 0
      const names: string[] = []
      await runInTransaction(others[writer % 3]?.sql ?? database.sql, async (tx) => {
        await tx`select from transactions where transaction_id = ${id} for update`
        const n = (counters.get(id) ?? 0) + 1
        await record(tx, id, n)
        await tx`select pg_sleep(${heldS})`
        if (fails) throw rollBack
        counters.set(id, n)
        names.push(`${id} ${n}`)
      }).catch((error: unknown) => {
        if (error !== rollBack) throw error
      })
      recorded.push(...names)
    }
  }
  async function publish({ sql }: Pick<TestDatabase, 'sql'>) {
    while (writing) await publishEvents(sql, 3)
  }
  const readers = [openReader(1), openReader(5), openReader()]
  async function follow(reader: ReturnType<typeof openReader>) {
    while (writing) await reader.poll()
  }

  const running = [...others.map(publish), publish(database), ...readers.map(follow)]
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
  writing = false
  await Promise.all(running)
  await waitUntil(async () => (await publishEvents(database.sql)) === 0, {
    what: 'all is published',
  })

  for (const reader of readers) {
    while ((await reader.poll()) > 0);
    const places = reader.received.map(({ id }) => Number(id))
    expect(places).toEqual([...new Set(places)].sort((a, b) => a - b))
    expect(reader.names().sort()).toEqual([...recorded].sort())
    for (const id of transactions) {
      const own = reader.received.filter(({ transactionId }) => transactionId === id)
      expect(own.map(({ data: { id } }) => id)).toEqual(own.map((_, index) => index + 1))
    }
  }
  expect(recorded.length).toBeGreaterThan(100)
})
