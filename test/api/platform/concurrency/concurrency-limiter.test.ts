import { describe, expect, it, onTestFinished } from 'vitest'
import type { ServiceContext } from '../../../../src/create-context.ts'
import { createConcurrencyLimiter } from '../../../../src/platform/concurrency/concurrency-limiter.ts'
import type { Sql } from '../../../../src/platform/postgres/types.ts'
import { beginSync, syncDue } from '../../../../src/sync/sync-due.ts'
import { borrowRig } from '../../../support/borrow-rig.ts'
import { whileUncommitted } from '../../../support/locks.ts'
import { startRefundRig } from '../../../support/refunds.ts'
import { makeTransaction, registerDue } from '../../../support/sync.ts'
import { waitUntil } from '../../../support/wait-until.ts'

describe('the limit of calls in flight', () => {
  it('halves when a call has no answer, once for all calls in flight then, and never below one', () => {
    const clock = { now: 10 }
    const limiter = createConcurrencyLimiter(16, { now: () => clock.now })
    for (let n = 0; n < 16; n += 1) limiter.recordOutcome(false, 5)
    expect(limiter.currentLimit()).toBe(8)
    for (let n = 0; n < 10; n += 1) {
      clock.now += 1
      limiter.recordOutcome(false, clock.now)
    }
    expect(limiter.currentLimit()).toBe(1)
    expect(limiter.acquireAll()).toBe(1)
  })

  it('grows by one per round of answers, never above the total', () => {
    const limiter = createConcurrencyLimiter(16, { now: () => 10 })
    limiter.recordOutcome(false, 11)
    for (let n = 0; n < 9; n += 1) limiter.recordOutcome(true, 12)
    expect(limiter.currentLimit()).toBe(9)
    for (let n = 0; n < 1_000; n += 1) limiter.recordOutcome(true, 12)
    expect(limiter.currentLimit()).toBe(16)
  })

  it('counts calls in flight when it is halved: no slot is free until enough of them have ended', () => {
    const limiter = createConcurrencyLimiter(8, { now: () => 10 })
    expect(limiter.acquireAll()).toBe(8)
    limiter.recordOutcome(false, 11)
    expect([limiter.countFree(), limiter.acquireAll()]).toEqual([0, 0])
    limiter.release(4)
    expect(limiter.countFree()).toBe(0)
    limiter.release(1)
    expect([limiter.countFree(), limiter.acquireAll(), limiter.acquireAll()]).toEqual([1, 1, 0])
  })
})

describe('holders that wait for a slot', () => {
  const settle = (ready: Promise<boolean>) => Promise.race([ready, Promise.resolve('waits')])

  it('get it as soon as one is free: first the holder with the fewest, then who waited longest', async () => {
    const limiter = createConcurrencyLimiter(3)
    const started: string[] = []
    const acquire = (holder: string, name: string) =>
      void limiter.acquire(holder).ready.then(() => started.push(name))
    for (const name of ['A1', 'A2', 'A3', 'A4', 'A5']) acquire('A', name)
    acquire('B', 'B1')
    expect([limiter.countWaiting(), limiter.countWaiting('A'), limiter.countFree()]).toEqual([
      3, 2, 0,
    ])
    limiter.releaseAssigned('A')
    limiter.releaseForCommit('A')
    await Promise.resolve()
    expect(started).toEqual(['A1', 'A2', 'A3', 'B1', 'A4'])
    expect([limiter.countAssigned('A'), limiter.countAssigned('B')]).toEqual([2, 1])
  })

  it('do not get one that is reserved against them', async () => {
    const limiter = createConcurrencyLimiter(3, { reserved: () => 1 })
    for (let n = 0; n < 2; n += 1) limiter.acquire('A')
    const third = limiter.acquire('A')
    expect([await settle(third.ready), limiter.countFree()]).toEqual(['waits', 1])
    expect(await limiter.acquire('B').ready).toBe(true)
    limiter.releaseAssigned('A')
    expect(await third.ready).toBe(true)
  })

  it('get none while the limit is halved, and one as it grows again', async () => {
    const limiter = createConcurrencyLimiter(2, { now: () => 10 })
    for (let n = 0; n < 2; n += 1) limiter.acquire('A')
    const third = limiter.acquire('A')
    limiter.recordOutcome(false, 11)
    limiter.releaseAssigned('A')
    expect(await settle(third.ready)).toBe('waits')
    limiter.recordOutcome(true, 12)
    expect(await third.ready).toBe(true)
  })

  it('may give up, and then get none; not once they have it', async () => {
    const limiter = createConcurrencyLimiter(1)
    const [first, second, third] = [0, 1, 2].map(() => limiter.acquire('A'))
    second?.giveUp()
    first?.giveUp()
    expect([await first?.ready, await second?.ready, limiter.countWaiting()]).toEqual([
      true,
      false,
      1,
    ])
    limiter.releaseAssigned('A')
    expect([await third?.ready, limiter.countAssigned('A'), limiter.countFree()]).toEqual([
      true,
      1,
      0,
    ])
  })
})

async function countAnswered({ metrics }: ServiceContext): Promise<number> {
  const { values } = await metrics.gatewayCall.get()
  const counts = values.filter(({ metricName }) => metricName?.endsWith('_count'))
  return counts.reduce((sum, { value }) => sum + value, 0)
}

it('the next call is made while answers are being committed, within the limit of such commits', async () => {
  const rig = await borrowRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '2' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  const ids = Array.from({ length: 8 }, (_, n) => `T-WRITTEN-${n}`)
  for (const id of ids) {
    await makeTransaction(rig, id)
    await registerDue(rig, id)
  }
  const rounds: Promise<void>[] = []
  const begin = async () => {
    const { count, finished } = await beginSync(ctx)
    rounds.push(finished)
    return count
  }
  // The commit of an answer waits for the payments; a claim does not touch them.
  const hold = (held: Sql) => held`lock table payments in exclusive mode`
  await whileUncommitted(rig.database, hold, async (commit) => {
    expect(await begin()).toBe(2)
    await waitUntil(() => ctx.limiter.countFree() === 2, { what: 'free slots while commits wait' })
    expect(await begin()).toBe(2)
    await waitUntil(async () => (await countAnswered(ctx)) === 4, { what: 'two more answers' })
    // Four answers wait for their commit: these two keep their slots.
    expect(await begin()).toBe(2)
    await waitUntil(async () => (await countAnswered(ctx)) === 6, { what: 'the last answers' })
    expect([ctx.limiter.countFree(), await begin()]).toEqual([0, 0])
    await commit()
    await Promise.all(rounds)
  })
  expect([ctx.limiter.countFree(), await syncDue(ctx)]).toEqual([2, 2])
  for (const id of ids) expect(await rig.transaction(id)).toMatchObject({ state: 'paid' })
})

it('a query keeps its slot for the refund that may follow it', async () => {
  const rig = await startRefundRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '1' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  await makeTransaction(rig, 'T-KEPT', [{ id: 'P-KEPT' }])
  await registerDue(rig, 'T-KEPT')
  await syncDue(ctx)
  const answered = await countAnswered(ctx)
  const { status, body } = await rig.refund('P-KEPT')
  expect(status).toBe(202)
  // Without the gap between two queries of a transaction.
  await rig.database.sql`update transactions set due_at = now()`
  const hold = (held: Sql) => held`lock table payments in exclusive mode`
  const round = await whileUncommitted(rig.database, hold, async () => {
    const begun = await beginSync(ctx)
    const isAnswered = async () => (await countAnswered(ctx)) === answered + 1
    await waitUntil(isAnswered, { what: 'the answer' })
    expect([begun.count, ctx.limiter.countFree()]).toEqual([1, 0])
    return begun
  })
  await round.finished
  expect([await rig.sent(body.id), ctx.limiter.countFree()]).toEqual([1, 1])
})

it('a failing gateway gets fewer calls at once, and more again once it answers', async () => {
  const rig = await borrowRig({ settings: { ROLE: 'web', GATEWAY_MAX_CONCURRENCY: '8' } })
  onTestFinished(() => rig.stop())
  const { ctx } = rig.service
  const ids = Array.from({ length: 8 }, (_, n) => `T-SLOTS-${n}`)
  for (const id of ids) await makeTransaction(rig, id)
  await rig.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500', times: 8 })
  for (const id of ids) await registerDue(rig, id)
  expect(await syncDue(ctx)).toBe(8)
  expect(ctx.limiter.currentLimit()).toBe(4)
  await rig.database.sql`update transactions set due_at = now()`
  expect(await syncDue(ctx)).toBe(4)
  expect(await syncDue(ctx)).toBe(4)
  expect(ctx.limiter.currentLimit()).toBe(5)
  const metrics = await (await fetch(`${rig.service.url}/metrics`)).text()
  expect(metrics).toContain('\ngateway_concurrency_limit 5\n')
})
