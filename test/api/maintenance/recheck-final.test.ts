import { describe, expect, it } from 'vitest'
import { recheckFinal } from '../../../src/maintenance/rechecks.ts'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { expectUnblocked, whileUncommitted } from '../../support/locks.ts'
import { MERCHANT, startTestService } from '../../support/service.ts'
import {
  countQueries,
  makeTransaction,
  notifyOf,
  readItem,
  registerDue,
  syncAgain,
  waitForQueries,
} from '../../support/sync.ts'
import { useTwoServices } from '../../support/use-started.ts'
import { waitUntil } from '../../support/wait-until.ts'

const DAY_MS = 86_400_000

/** Neither process has a loop that competes with the test. */
const settings = { ROLE: 'web', SYNC_BACKOFF_MS: '60000', SYNC_MAX_ATTEMPTS: '2' }
const { rig, other } = useTwoServices(settings)

/** A final transaction, queried once. */
async function finish(id: string, payments: Parameters<typeof makeTransaction>[2] = [{}]) {
  await makeTransaction(rig, id, payments)
  await registerDue(rig, id)
  await syncAgain(rig, id)
}

/** When it is rechecked (ms from now); null for never. */
async function readPlan(id: string): Promise<number | null> {
  const [row] = await rig.database.sql<{ ms: number | null }[]>`
    select (extract(epoch from nullif(reconcile_at, 'infinity') - now()) * 1000)::float8 as ms
    from transactions where transaction_id = ${id}`
  return row?.ms ?? null
}

/** Advances time for every scheduled recheck. */
const grow = () => rig.database.sql`
  update transactions set reconcile_at = reconcile_at - interval '1 day'
  where reconcile_at < 'infinity'`

const recheck = () => recheckFinal(rig.service.ctx)

async function listKinds(id: string) {
  const rows = await rig.database.sql<{ kind: string; ours: string; theirs: string }[]>`
    select kind, ours, theirs from discrepancies where transaction_id = ${id} order by id`
  return rows.map(({ kind, ours, theirs }) => [kind, ours, theirs])
}

describe('a final transaction', () => {
  it('is queried once more at its age, by the ordinary claim, and then never again', async () => {
    await finish('T-ONCE')
    expect(await readPlan('T-ONCE')).toBeGreaterThan(DAY_MS - 60_000)
    expect(await readPlan('T-ONCE')).toBeLessThanOrEqual(DAY_MS)
    expect(await recheck()).toBe(0)
    await grow()
    expect(await recheck()).toBe(1)
    expect(await countQueries(rig, 'T-ONCE')).toBe(1)
    expect(await readPlan('T-ONCE')).toBeNull()
    expect(await recheck()).toBe(0)
    await syncAgain(rig, 'T-ONCE')
    expect(await countQueries(rig, 'T-ONCE')).toBe(2)
    expect(await readPlan('T-ONCE')).toBeNull()
    expect(await readItem(rig, 'T-ONCE')).toMatchObject({ dueInMs: null, version: 2 })
    await grow()
    expect(await recheck()).toBe(0)
  })

  it('is rechecked by one of two processes, and its schedule outlives the one that made it', async () => {
    for (const id of ['T-A', 'T-B', 'T-C']) await finish(id)
    await grow()
    const rechecked = await Promise.all([recheck(), recheckFinal(other.ctx)])
    expect(rechecked[0] + rechecked[1]).toBe(3)
    const wants = await rig.database.sql`select want::int from transactions`
    expect(wants.map(({ want }) => want)).toEqual([2, 2, 2])
    expect(await recheckFinal(other.ctx)).toBe(0)
  })

  it('that is locked is skipped, not waited for', async () => {
    for (const id of ['T-HELD', 'T-FREE']) await finish(id)
    await grow()
    const { database } = rig
    const hold = (held: typeof database.sql) =>
      held`select from transactions where transaction_id = 'T-HELD' for update`
    await whileUncommitted(database, hold, async () => {
      expect(await expectUnblocked(database, recheck())).toBe(1)
    })
    expect(await readPlan('T-FREE')).toBeNull()
    expect(await recheck()).toBe(1)
  })

  it('whose answer changes afterwards is recorded with the change, and is queried once more', async () => {
    await finish('T-BACK', [{ id: 'p-back', amount: '10000.50' }])
    await rig.control('PATCH', '/payments/p-back', { status: 'FAILED' })
    await grow()
    await recheck()
    await syncAgain(rig, 'T-BACK')
    expect(await rig.transaction('T-BACK')).toMatchObject({ state: 'failed', final: true })
    expect(await listKinds('T-BACK')).toEqual([
      ['ipn_missing', 'state paid, known by a request to sync', 'no notification'],
      ['answer_went_backwards', 'status SUCCESS', 'status FAILED'],
    ])
    expect(await readPlan('T-BACK')).toBeGreaterThan(DAY_MS - 60_000)
    await grow()
    expect(await recheck()).toBe(1)
    await syncAgain(rig, 'T-BACK')
    expect(await readPlan('T-BACK')).toBeNull()
  })

  it('keeps its time when it is notified again and nothing changed', async () => {
    await finish('T-AGAIN')
    const hour = 3_600_000
    await rig.database.sql`update transactions set reconcile_at = now() + interval '1 hour'`
    await notifyOf(rig, 'T-AGAIN')
    await syncAgain(rig, 'T-AGAIN')
    expect(await readPlan('T-AGAIN')).toBeLessThanOrEqual(hour)
    expect(await readPlan('T-AGAIN')).toBeGreaterThan(hour - 60_000)
  })

  it('is retried as usual when that query fails, and not rechecked meanwhile', async () => {
    await finish('T-RETRY')
    await grow()
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500', times: 1 })
    expect(await recheck()).toBe(1)
    await syncAgain(rig, 'T-RETRY')
    expect(await readItem(rig, 'T-RETRY')).toMatchObject({ attempts: 1 })
    await grow()
    expect(await recheck()).toBe(0)
    await syncAgain(rig, 'T-RETRY')
    expect(await readItem(rig, 'T-RETRY')).toMatchObject({ attempts: 0, dueInMs: null })
  })

  it('that was notified in time has no `ipn_missing`', async () => {
    await makeTransaction(rig, 'T-KNOWN')
    await notifyOf(rig, 'T-KNOWN')
    await syncDue(rig.service.ctx)
    await grow()
    expect(await recheck()).toBe(1)
    expect(await listKinds('T-KNOWN')).toEqual([])
  })
})

describe('an open transaction', () => {
  it('is left to its own schedule', async () => {
    await finish('T-OPEN', [{ status: 'PROCESSING' }])
    expect(await readItem(rig, 'T-OPEN')).toMatchObject({ state: 'pending' })
    expect(await readPlan('T-OPEN')).toBeNull()
  })

  it('that was abandoned is queried once more, and never a second time', async () => {
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500' })
    await registerDue(rig, 'T-LOST')
    const giveUp = async () => {
      for (let attempt = 0; attempt < 2; attempt += 1) await syncAgain(rig, 'T-LOST')
      expect(await readItem(rig, 'T-LOST')).toMatchObject({ abandoned: true, dueInMs: null })
    }
    await giveUp()
    expect(await readPlan('T-LOST')).toBeGreaterThan(DAY_MS - 60_000)
    await grow()
    expect(await recheck()).toBe(1)
    expect(await readItem(rig, 'T-LOST')).toMatchObject({ abandoned: false, attempts: 0 })
    await giveUp()
    expect(await readPlan('T-LOST')).toBeNull()
    expect(await recheck()).toBe(0)
    expect(await listKinds('T-LOST')).toEqual([])
  })
})

describe('the pass', () => {
  const seed = (merchantCode: string, count: number, dueAgo: string | null) => rig.database.sql`
    insert into transactions (merchant_code, transaction_id, state, final, ipn_count, due_at, reconcile_at)
    select ${merchantCode}, 'T-SEED-' || gen_random_uuid(), 'paid', true, 1,
      now() - ${dueAgo}::interval, now() - interval '1 s'
    from generate_series(1, ${count})`

  it('never makes more than a hundred wait for the claim', async () => {
    await seed(MERCHANT.merchantCode, 150, null)
    expect(await recheck()).toBe(100)
    expect(await recheck()).toBe(0)
    await rig.database.sql`update transactions set due_at = null where due_at is not null`
    expect(await recheck()).toBe(50)
  })

  it('skips, and is not blocked by, an account that is no longer in the settings', async () => {
    await seed('GONE', 150, '1 hour')
    await seed(MERCHANT.merchantCode, 1, null)
    expect(await recheck()).toBe(1)
    expect(await recheck()).toBe(0)
  })
})

it('with RECONCILE_FINAL_FOR_MS=0 nothing is rechecked', async () => {
  const off = await startTestService(rig.database, rig.sandbox.url, {
    settings: { ...settings, RECONCILE_FINAL_FOR_MS: '0' },
  })
  try {
    await makeTransaction(rig, 'T-OFF')
    await registerDue(rig, 'T-OFF')
    expect(await syncDue(off.ctx)).toBe(1)
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500' })
    await registerDue(rig, 'T-OFF-LOST')
    for (let attempt = 0; attempt < 2; attempt += 1) await syncAgain(rig, 'T-OFF-LOST', off.ctx)
  } finally {
    await off.stop()
  }
  for (const id of ['T-OFF', 'T-OFF-LOST']) {
    expect(await readItem(rig, id)).toMatchObject({ dueInMs: null })
    expect(await readPlan(id)).toBeNull()
  }
})

it('a running service does all of it on its own', async () => {
  const running = await startTestService(rig.database, rig.sandbox.url, {
    settings: { ROLE: 'worker', RECONCILE_FINAL_FOR_MS: '1' },
  })
  try {
    await makeTransaction(rig, 'T-ALIVE')
    await registerDue(rig, 'T-ALIVE')
    await waitForQueries(rig, 'T-ALIVE', 2)
    const rests = async () => (await readItem(rig, 'T-ALIVE')).dueInMs === null
    await waitUntil(rests, { what: 'the second answer to be stored' })
    expect(await readPlan('T-ALIVE')).toBeNull()
  } finally {
    await running.stop()
  }
  expect(await countQueries(rig, 'T-ALIVE')).toBe(2)
})
