import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'
import { createInbox, type Inbox, InboxFullError } from '../../src/ipn/inbox.ts'
import type { ReceivedNotification } from '../../src/ipn/store.ts'
import { makePaymentArrival, makeRefundArrival } from '../support/arrivals.ts'
import {
  type BorrowedDatabase,
  borrowDatabase,
  holdLocks,
  listBlockedCommits,
} from '../support/database.ts'
import { waitUntil } from '../support/wait-until.ts'

/** However long the test holds its locks. */
const PATIENT = { staleMs: 60_000, queueTimeoutMs: 60_000, runTimeoutMs: 60_000 }

let database: BorrowedDatabase
/** The pool of the inboxes; the other one holds locks and observes. */
let pool: Database
let inbox: Inbox
let committed = 0
beforeEach(async () => {
  database = await borrowDatabase()
  pool = openDatabase(database.url, 4)
  countStatements(pool)
  inbox = createInbox(pool.sql, PATIENT)
})
afterEach(async () => {
  await pool.close()
  await database.sql.unsafe(`
    drop function if exists refuse cascade;
    drop sequence if exists tries`)
  await database.release()
})

/** A notification about `transactionId`; `text` decides whether it is the same one again. */
function arrival(transactionId: string, text = transactionId): ReceivedNotification {
  return makePaymentArrival('SHOP1', transactionId, text)
}

/** Of a refund: it touches no transaction. */
const refundArrival = (requestId: string) => makeRefundArrival('SHOP1', requestId)

const storeAll = (to: Inbox, arrivals: readonly ReceivedNotification[]) =>
  Promise.allSettled(arrivals.map((one) => to.store(one)))

const listStored = async () => {
  const rows = await database.sql<{ id: string; deliveries: number }[]>`
    select transaction_id as id, deliveries from ipn_events order by transaction_id`
  return Object.fromEntries(rows.map(({ id, deliveries }) => [id, deliveries]))
}

/** Every commit of an inbox is one statement, the only one that is sent as a constant text. */
function countStatements({ sql }: Database): void {
  const send = sql.unsafe
  vi.spyOn(sql, 'unsafe').mockImplementation((...given) => {
    const statement = send(...given)
    statement.then(
      () => {
        committed += 1
      },
      () => {},
    )
    return statement
  })
}

/** Returns a function that counts the commits of the inboxes since now. */
function countCommits(): () => number {
  const before = committed
  return () => committed - before
}

const lockEvent = (id: string) =>
  holdLocks(
    database,
    (tx) =>
      tx`select 1 from ipn_events where coalesce(transaction_id, request_id) = ${id} for update`,
  )
const lockTransaction = (id: string) =>
  holdLocks(
    database,
    (tx) => tx`select 1 from transactions where transaction_id = ${id} for update`,
  )
const waitBlocked = (n: number) =>
  waitUntil(async () => (await listBlockedCommits(database)).length === n, {
    what: `${n} blocked commits`,
  })

/** Holds back a commit of the inbox, behind which everything else gathers. */
async function closeGate(to: Inbox) {
  await to.store(arrival('GATE'))
  const lock = await lockEvent('GATE')
  const held = to.store(arrival('GATE'))
  await waitBlocked(1)
  return {
    async open() {
      await lock.release()
      await held
    },
  }
}

it('arrivals during a commit share the next one, and are acknowledged only after it', async () => {
  await inbox.store(arrival('GATE'))
  const commits = countCommits()
  const lock = await lockEvent('GATE')
  const answered: string[] = []
  const store = (one: ReceivedNotification, name: string) =>
    inbox.store(one).then(() => {
      answered.push(name)
    })
  const first = store(arrival('GATE'), 'first')
  await waitBlocked(1)
  const others = Array.from({ length: 50 }, (_, n) => store(arrival(`T${n % 10}`, `${n}`), `${n}`))
  expect(await listStored()).toEqual({ GATE: 1 })
  expect(answered).toEqual([])
  await lock.release()
  await Promise.all([first, ...others])
  expect(answered[0]).toBe('first')
  await waitUntil(() => commits() >= 2, { what: 'two commits' })
  expect(commits()).toBe(2)
  const [row] = await database.sql`
    select (select count(*) from ipn_events) as events, (select count(*) from transactions) as transactions,
      (select sum(ipn_count) from transactions)::int as counted`
  expect(row).toEqual({ events: 51, transactions: 11, counted: 52 })
})

it('a repeated refund notification holds nothing while it waits for its transaction, whose commit marks it handled', async () => {
  await inbox.store(arrival('T'))
  await database.sql`
    insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
      refunded_at_first, payment_method, as_of)
    values (now(), 'SHOP1', 'P', 'T', 'SUCCESS', 1000, 0, 0, 'CC', now())`
  const repeat = () => inbox.store(makeRefundArrival('SHOP1', 'R', 'P'))
  await repeat()
  const lock = await lockTransaction('T')
  const repeated = repeat()
  await waitBlocked(1)
  const free = await database.sql`
    select from ipn_events where request_id = 'R' for update skip locked`
  await lock.release()
  await repeated
  expect(free).toHaveLength(1)
})

it('an idle inbox commits at once, one after the other', async () => {
  const commits = countCommits()
  for (const id of ['A', 'B', 'C']) await inbox.store(arrival(id))
  await waitUntil(() => commits() === 3, { what: 'three commits' })
  expect(await listStored()).toEqual({ A: 1, B: 1, C: 1 })
})

it('the same bytes many times in one commit are one row that counts them', async () => {
  const gate = await closeGate(inbox)
  const copies = storeAll(
    inbox,
    Array.from({ length: 20 }, () => arrival('SAME')),
  )
  await gate.open()
  expect((await copies).map(({ status }) => status)).toEqual(Array(20).fill('fulfilled'))
  expect(await listStored()).toEqual({ GATE: 2, SAME: 20 })
})

it('the same bytes of two merchants are two rows, even in one commit', async () => {
  const gate = await closeGate(inbox)
  const both = storeAll(inbox, [arrival('SAME'), makePaymentArrival('SHOP2', 'SAME')])
  await gate.open()
  await both
  const rows = await database.sql`
    select merchant_code as merchant, deliveries from ipn_events
    where transaction_id = 'SAME' order by merchant_code`
  expect([...rows]).toEqual([
    { merchant: 'SHOP1', deliveries: 1 },
    { merchant: 'SHOP2', deliveries: 1 },
  ])
})

it('two batches that name the same rows in opposite order never deadlock', async () => {
  const names = ['A', 'M', 'Z']
  for (const [lockRow, about] of [
    [lockEvent, (id: string) => refundArrival(id)],
    [lockTransaction, (id: string, from: string) => arrival(id, `${id} from ${from}`)],
  ] as const) {
    const inboxes = {
      first: createInbox(pool.sql, PATIENT),
      second: createInbox(pool.sql, PATIENT),
    }
    for (const id of ['GATE first', 'GATE second', ...names]) await inbox.store(arrival(id))
    for (const id of names) await inbox.store(refundArrival(id))
    const gates = {
      first: await lockEvent('GATE first'),
      second: await lockEvent('GATE second'),
    }
    const middle = await lockRow('M')
    const stores: Promise<unknown>[] = []
    let gathering = 0
    // Both queue behind their gate, the second one backwards; then each runs as far as it can.
    for (const [name, order] of [
      ['first', names],
      ['second', names.toReversed()],
    ] as const) {
      stores.push(inboxes[name].store(arrival(`GATE ${name}`)))
      gathering += 1
      await waitBlocked(gathering)
      stores.push(
        storeAll(
          inboxes[name],
          order.map((id) => about(id, name)),
        ),
      )
    }
    const commits = countCommits()
    await gates.first.release()
    await gates.second.release()
    await waitUntil(() => commits() === 2, { what: 'both gates' })
    await waitBlocked(2)
    await middle.release()
    await Promise.all(stores)
    await waitUntil(() => commits() >= 4, { what: 'both batches' })
    expect(commits()).toBe(4)
  }
  const [row] = await database.sql`
    select deadlocks::int from pg_stat_database where datname = current_database()`
  expect(row?.deadlocks).toBe(0)
})

it('one bad row is refused alone, wherever it is in its batch', async () => {
  for (const at of [0, 6, 12]) {
    const gate = await closeGate(inbox)
    const batch = Array.from({ length: 13 }, (_, n) => arrival(`T${at}-${n}`))
    batch[at] = makePaymentArrival('SHOP1', null as unknown as string, `BAD${at}`)
    const results = storeAll(inbox, batch)
    await gate.open()
    const failed = (await results).flatMap((one, n) =>
      one.status === 'rejected' ? [[n, one.reason.constraint_name]] : [],
    )
    expect(failed).toEqual([[at, 'ipn_events_kind_has_its_id']])
  }
  expect(Object.keys(await listStored())).toHaveLength(1 + 3 * 12)
})

it('an error of the server itself refuses the whole batch at once, and no row is tried alone', async () => {
  await database.sql.unsafe(`
    create sequence tries;
    create function refuse() returns trigger language plpgsql as $$
    begin perform nextval('tries'); raise 'no room' using errcode = 'disk_full'; end $$;
    create trigger refuse before insert on transactions for each row
      when (new.transaction_id = 'C') execute function refuse()`)
  const gate = await closeGate(inbox)
  const results = storeAll(
    inbox,
    ['A', 'B', 'C', 'D'].map((id) => arrival(id)),
  )
  await gate.open()
  for (const one of await results) expect(one).toMatchObject({ reason: { code: '53100' } })
  const [row] = await database.sql`select last_value::int as tries from tries`
  expect(row?.tries).toBe(1)
  await inbox.store(arrival('A'))
  expect(await listStored()).toEqual({ A: 1, GATE: 2 })
})

it('a full inbox refuses the next one, loses none, and accepts again when there is room', async () => {
  const gate = await closeGate(inbox)
  const same = arrival('SAME')
  const taken = storeAll(
    inbox,
    Array.from({ length: 5_000 }, () => same),
  )
  await expect(inbox.store(same)).rejects.toThrow(InboxFullError)
  await gate.open()
  expect((await taken).filter(({ status }) => status === 'rejected')).toEqual([])
  await inbox.store(same)
  expect(await listStored()).toEqual({ GATE: 2, SAME: 5_001 })
})

it('limits the total size of waiting bodies, whatever their number', async () => {
  const gate = await closeGate(inbox)
  const large = { ...arrival('LARGE'), body: 'x'.repeat(64 * 1024) }
  const taken = storeAll(
    inbox,
    Array.from({ length: 256 }, () => large),
  )
  expect(inbox.isFull()).toBe(true)
  await expect(inbox.store(arrival('SMALL'))).rejects.toThrow(InboxFullError)
  await gate.open()
  expect((await taken).filter(({ status }) => status === 'rejected')).toEqual([])
  expect(inbox.readGauges()).toEqual({ waiting: 0, characters: 0 })
  await inbox.store(arrival('SMALL'))
  expect(await listStored()).toEqual({ GATE: 2, LARGE: 256, SMALL: 1 })
})

it('an arrival that no commit takes in time is refused, never stored, and frees its memory', async () => {
  const hasty = createInbox(pool.sql, { ...PATIENT, queueTimeoutMs: 50 })
  const gate = await closeGate(hasty)
  await expect(hasty.store(arrival('LATE'))).rejects.toThrow(InboxFullError)
  expect(hasty.readGauges()).toEqual({ waiting: 0, characters: 2 })
  await gate.open()
  expect(hasty.readGauges()).toEqual({ waiting: 0, characters: 0 })
  expect(await listStored()).toEqual({ GATE: 2 })
})

it('while one has waited for too long, new arrivals are refused at once', async () => {
  const stale = createInbox(pool.sql, { ...PATIENT, staleMs: 20 })
  await stale.store(arrival('GATE'))
  const lock = await lockEvent('GATE')
  const taken = [stale.store(arrival('GATE'))]
  await waitBlocked(1)
  expect(stale.isFull()).toBe(false)
  taken.push(stale.store(arrival('WAITS')))
  await waitUntil(() => stale.isFull(), { what: 'a wait that is too long' })
  await expect(stale.store(arrival('REFUSED'))).rejects.toThrow(InboxFullError)
  await lock.release()
  await Promise.all(taken)
  expect(stale.isFull()).toBe(false)
  expect(await listStored()).toEqual({ GATE: 2, WAITS: 1 })
})

it('a commit that takes too long is refused to its callers, and no longer blocks the next ones', async () => {
  const hasty = createInbox(pool.sql, { ...PATIENT, runTimeoutMs: 1_000 })
  await hasty.store(arrival('GATE'))
  const lock = await lockEvent('GATE')
  await expect(hasty.store(arrival('GATE'))).rejects.toThrow(InboxFullError)
  await hasty.store(arrival('NEXT'))
  expect(hasty.readGauges()).toEqual({ waiting: 0, characters: 2 })
  await lock.release()
  await hasty.drain()
  expect(await listStored()).toEqual({ GATE: 2, NEXT: 1 })
})

it('a statement without a confirmation by the server does not count as stored', async () => {
  const silent = new Proxy(pool.sql, {
    get: (sql, member) =>
      member === 'unsafe' ? () => Promise.resolve([]) : Reflect.get(sql, member),
  })
  const unconfirmed = createInbox(silent, PATIENT)
  await expect(unconfirmed.store(arrival('UNHEARD'))).rejects.toThrow(
    'the database did not confirm',
  )
  expect(unconfirmed.readGauges()).toEqual({ waiting: 0, characters: 0 })
})

it('draining waits for everything accepted so far', async () => {
  await inbox.drain()
  await inbox.store(arrival('GATE'))
  const lock = await lockEvent('GATE')
  const stores = [inbox.store(arrival('GATE'))]
  await waitBlocked(1)
  stores.push(inbox.store(arrival('T1')))
  let isDrained = false
  const drained = inbox.drain().then(() => {
    isDrained = true
  })
  await waitBlocked(1)
  expect(isDrained).toBe(false)
  await lock.release()
  await drained
  expect(await listStored()).toEqual({ GATE: 2, T1: 1 })
  await Promise.all(stores)
})
