import { describe, expect, it } from 'vitest'
import { CLOCK } from '../../src/platform/postgres/clock.ts'
import type { Sql } from '../../src/platform/postgres/types.ts'
import { claimDue, leaseMs, releaseClaim } from '../../src/sync/claim-due.ts'
import { lockClaimed } from '../../src/sync/fence.ts'
import { findRestMs, syncDue } from '../../src/sync/sync-due.ts'
import type { SyncContext } from '../../src/sync/types.ts'
import { makeDue } from '../../src/transactions/due.ts'
import { holdLocks } from '../support/database.ts'
import {
  commitOnceBlocked,
  expectUnblocked,
  waitUntilBlocked,
  whileUncommitted,
} from '../support/locks.ts'
import { changeLifecycle } from '../support/service.ts'
import {
  claimOne,
  commitClaim,
  countQueries,
  keepLog,
  makeDueNow,
  makeTransaction,
  readItem,
  registerDue,
  waitForQueries,
} from '../support/sync.ts'
import { useTwoServices } from '../support/use-started.ts'

/** Neither process has a loop that competes with the test. */
const settings = { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '4' }
const { rig, other } = useTwoServices(settings)

const read = (id: string) => readItem(rig, id)

/** The context of a process, with the statements of another session. */
const runOn = (sql: Sql, ctx: SyncContext): SyncContext => ({ ...ctx, db: { ...ctx.db, sql } })

describe('a claim', () => {
  it('skips rows that another process is claiming, without waiting for it', async () => {
    await registerDue(rig, 'T-1')
    await registerDue(rig, 'T-2')
    await whileUncommitted(
      rig.database,
      (held) => claimDue(runOn(held, rig.service.ctx), 1),
      async (commit, mine) => {
        expect(mine).toHaveLength(1)
        const theirs = await expectUnblocked(rig.database, claimDue(other.ctx, 10))
        expect(theirs).toHaveLength(1)
        expect(theirs[0]?.transactionId).not.toBe(mine[0]?.transactionId)
        await commit()
        expect(await claimDue(other.ctx, 10)).toEqual([])
      },
    )
  })

  it('counts its lease from before its statement, which may have to wait', async () => {
    await registerDue(rig, 'T-1')
    const lock = await holdLocks(rig.database, (tx) => tx`lock table transactions`)
    const claiming = claimDue(other.ctx, 1)
    await new Promise((resolve) => setTimeout(resolve, 300))
    await lock.release()
    const [claim] = await claiming
    const lease = leaseMs(other.ctx.config.GATEWAY_TIMEOUT_MS)
    expect(claim?.leaseLeftMs()).toBeLessThanOrEqual(lease - 300)
  })

  it('claims at most `limit` rows, whatever plan Postgres picks', async () => {
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, due_at)
      select 'UFLIYL', 'T-' || i, now() from generate_series(1, 50) as i`
    const held = await rig.database.sql.reserve()
    try {
      for (const plan of ['hashjoin', 'mergejoin', 'hashagg', 'sort', 'material', 'memoize']) {
        await held`select set_config(${`enable_${plan}`}, 'off', false)`
      }
      expect(await claimDue(runOn(held, rig.service.ctx), 3)).toHaveLength(3)
      await held`reset all`
    } finally {
      held.release()
    }
  })

  it('claims the longest due first, and no row that is leased or not due yet', async () => {
    await registerDue(rig, 'T-NEWER')
    await registerDue(rig, 'T-OLDER')
    await makeDueNow(rig, 'T-OLDER')
    await registerDue(rig, 'T-LATER')
    await rig.database.sql`
      update transactions set due_at = now() + interval '1 min' where transaction_id = 'T-LATER'`
    const ids = async () => (await claimDue(other.ctx, 1)).map((claim) => claim.transactionId)
    expect([await ids(), await ids(), await ids()]).toEqual([['T-OLDER'], ['T-NEWER'], []])
  })

  it('lasts longer than three calls', async () => {
    await registerDue(rig, 'T-1')
    await claimOne(rig.service.ctx)
    const { leased, dueInMs } = await read('T-1')
    expect(leased).toBe(true)
    expect(dueInMs).toBeGreaterThan(21_000)
    expect(dueInMs).toBeLessThanOrEqual(24_000)
  })

  it('skips transactions of an account that is no longer configured, and rests', async () => {
    await rig.database.sql`
      insert into transactions (merchant_code, transaction_id, due_at) values ('GONE', 'T-1', now())`
    const before = await read('T-1')
    expect(await syncDue(rig.service.ctx)).toBe(0)
    expect(await findRestMs(rig.service.ctx)).toBe(1000)
    expect(await read('T-1')).toMatchObject({ version: before.version, leased: false, attempts: 0 })
  })
})

describe('the loop rests', () => {
  it('a moment while another session holds the lock of a due row', async () => {
    await registerDue(rig, 'T-1')
    await whileUncommitted(
      rig.database,
      (held) => held`select from transactions where transaction_id = 'T-1' for update`,
      async () => {
        expect(await syncDue(rig.service.ctx)).toBe(0)
        expect(await findRestMs(rig.service.ctx)).toBeGreaterThanOrEqual(20)
      },
    )
  })

  it('until the next row is due, but at most a second', async () => {
    await registerDue(rig, 'T-1')
    await rig.database.sql`update transactions set due_at = now() + interval '900 ms'`
    const ms = await findRestMs(rig.service.ctx)
    expect(ms).toBeGreaterThan(20)
    expect(ms).toBeLessThanOrEqual(900)
    await rig.database.sql`update transactions set due_at = now() + interval '1 h'`
    expect(await findRestMs(rig.service.ctx)).toBe(1000)
  })

  it('only briefly while every call slot is taken, and claims nothing then', async () => {
    for (const id of ['T-1', 'T-2', 'T-3', 'T-4', 'T-5']) await registerDue(rig, id)
    await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'delay', delayMs: 1_500 })
    const round = syncDue(rig.service.ctx)
    await waitForQueries(rig, 'T-4', 1)
    expect(rig.service.ctx.callSlots.free()).toBe(0)
    expect(await syncDue(rig.service.ctx)).toBe(0)
    expect(await findRestMs(rig.service.ctx)).toBeLessThan(100)
    expect((await read('T-5')).leased).toBe(false)
    expect(await round).toBe(4)
  })
})

describe('the fence', () => {
  it('an expired lease is taken over, and the answer of its old owner is not written', async () => {
    await makeTransaction(rig, 'T-1')
    await registerDue(rig, 'T-1')
    const old = await claimOne(rig.service.ctx)
    await makeDueNow(rig, 'T-1')
    await whileUncommitted(
      rig.database,
      (held) => claimOne(runOn(held, other.ctx)),
      async (commit, mine) => {
        const late = commitClaim(rig.service.ctx, old)
        await waitUntilBlocked(rig.database)
        await commit()
        expect(await late).toMatchObject({ end: { next: 'lost', dueAgain: false } })
        expect(await rig.database.sql`select from gateway_calls`).toHaveLength(0)
        expect(await rig.database.sql`select from payments`).toHaveLength(0)
        expect(await read('T-1')).toMatchObject({ state: 'pending', leased: true, asOf: null })
        expect(await commitClaim(other.ctx, mine)).toMatchObject({ end: { next: 'idle' } })
      },
    )
    expect(await read('T-1')).toMatchObject({ state: 'paid', leased: false, dueInMs: null })
  })

  it('locks transactions in the order of their keys, so that two commits never deadlock', async () => {
    const ids = ['T-A', 'T-M', 'T-Z']
    for (const id of ids) await registerDue(rig, id)
    const claims = await claimDue(rig.service.ctx, ids.length)
    const reversed = claims
      .toSorted((a, b) => (a.transactionId < b.transactionId ? 1 : -1))
      .map((claim) => ({ claim, sentAfterMs: 0 }))
    const locked = await commitOnceBlocked(
      rig.database,
      (held) => held`select from transactions where transaction_id = 'T-M' for update`,
      () => rig.database.sql.begin((tx) => lockClaimed(tx, reversed)),
      async () => {
        const free = await rig.database.sql`
          select from transactions where transaction_id = 'T-Z' for update skip locked`
        expect(free).toHaveLength(1)
      },
    )
    expect(locked.size).toBe(ids.length)
  })

  it('a worker that lost the lease cannot release it', async () => {
    await registerDue(rig, 'T-1')
    const old = await claimOne(rig.service.ctx)
    await makeDueNow(rig, 'T-1')
    await claimOne(other.ctx)
    await releaseClaim(rig.service.ctx, old)
    expect(await read('T-1')).toMatchObject({ leased: true })
    expect((await read('T-1')).dueInMs).toBeGreaterThan(10_000)
  })

  it('a notification committed while the answer is being written leads to one more query, at the gap', async () => {
    await makeTransaction(rig, 'T-1')
    await registerDue(rig, 'T-1')
    const claim = await claimOne(rig.service.ctx)
    await rig.database.sql`update transactions set gap_ms = 60000`
    const settled = await commitOnceBlocked(
      rig.database,
      (held) =>
        held`update transactions as t set ${makeDue(held)} from ${held.unsafe(CLOCK)} where transaction_id = 'T-1'`,
      () => commitClaim(rig.service.ctx, claim),
    )
    expect(settled).toMatchObject({ end: { next: 'query_now', dueAgain: true } })
    expect(await read('T-1')).toMatchObject({ state: 'paid', leased: false })
    expect((await read('T-1')).dueAfterQueryMs).toBe(60_000)
  })
})

it('a process that is stopping releases its claim: due at once, no failure counted', async () => {
  await registerDue(rig, 'T-1')
  await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'acceptThenHang' })
  const before = await countQueries(rig, 'T-1')
  const givingUp = new AbortController()
  const round = syncDue(changeLifecycle(rig.service.ctx, { givingUp: givingUp.signal }))
  await waitForQueries(rig, 'T-1', before + 1)
  givingUp.abort()
  await round
  const { leased, dueInMs, attempts, lastError } = await read('T-1')
  expect({ leased, attempts, lastError }).toEqual({ leased: false, attempts: 0, lastError: null })
  expect(dueInMs).toBeLessThanOrEqual(0)
  expect(await rig.database.sql`select from gateway_calls`).toHaveLength(0)
})

it('an unexpected error is logged, and the transaction is queried again when its lease ends', async () => {
  await makeTransaction(rig, 'T-BROKEN')
  await registerDue(rig, 'T-BROKEN')
  const { log, errors } = keepLog()
  const { ctx } = rig.service
  const gateway = { ...ctx.gateway, queryPayments: () => Promise.reject(new Error('no memory')) }
  expect(await syncDue({ ...ctx, log, gateway })).toBe(1)
  expect(errors()).toMatchObject([{ transactionId: 'T-BROKEN' }])
  expect(await read('T-BROKEN')).toMatchObject({ leased: true, attempts: 0 })
  await makeDueNow(rig, 'T-BROKEN')
  await syncDue(other.ctx)
  expect(await read('T-BROKEN')).toMatchObject({ leased: false, state: 'paid' })
})
